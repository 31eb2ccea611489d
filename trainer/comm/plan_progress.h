// SPDX-License-Identifier: MIT
// A rank's progress in its plan, separately for each direction: a message is sent as soon as its
// content is complete, even if earlier ones have not been received, and the other way round. So a
// rank that the scheduler delays for a moment only delays ranks that need its numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

/// Messages are sent in the plan's order and received in the plan's order. Their contents are the
/// same as if the rounds were done one after the other.
class PlanProgress {
 public:
  /// `plan` must outlive it.
  explicit PlanProgress(const Plan& plan);

  bool is_done() const { return !is_sending() && !is_receiving(); }
  bool is_sending() const { return sending_ < plan_.size(); }
  bool is_receiving() const { return receiving_ < plan_.size(); }

  /// The round whose message is being sent; valid only while is_sending().
  const Round& out() const { return plan_[sending_]; }
  /// The round whose message is being received; valid only while is_receiving().
  const Round& in() const { return plan_[receiving_]; }
  std::int64_t sent() const { return sent_; }          ///< numbers of `out`
  std::int64_t received() const { return received_; }  ///< numbers of `in`

  /// How many numbers may be sent now: those that no incoming message still has to change.
  std::int64_t may_send() const;
  /// How many numbers may be received now: those whose old values no longer have to be sent.
  std::int64_t may_receive() const;

  void add_sent(std::int64_t count);
  void add_received(std::int64_t count);

 private:
  void skip_empty();

  const Plan& plan_;
  std::size_t sending_ = 0;    ///< index of a round
  std::size_t receiving_ = 0;  ///< index of a round
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
};

// The seam between the plans of exchange_plan.h and the transport of their messages: our own links,
// or the library's send and receive.

class Transport {
 public:
  virtual ~Transport() = default;

  /// Runs all rounds of this rank on its `tensor`. Throws std::exception if a peer is gone or too
  /// slow.
  virtual void perform(const Plan& plan, float* tensor) = 0;
};

}  // namespace dtool::trainer
