// How far a rank has come with its plan, each direction by itself: a message goes out as soon as
// what is in it is there, though earlier ones have not come in, and the other way round. A rank
// that the scheduler holds back for a moment then holds back nobody who does not need its numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

/// Messages go out in the plan's order, and come in in the plan's order; what each holds is as if
/// the rounds were done one after the other.
class PlanProgress {
 public:
  /// `plan` must outlive it.
  explicit PlanProgress(const Plan& plan);

  bool is_done() const { return !is_sending() && !is_receiving(); }
  bool is_sending() const { return sending_ < plan_.size(); }
  bool is_receiving() const { return receiving_ < plan_.size(); }

  /// The round whose message is on its way out; only while `is_sending`.
  const Round& out() const { return plan_[sending_]; }
  /// The round whose message is coming in; only while `is_receiving`.
  const Round& in() const { return plan_[receiving_]; }
  std::int64_t sent() const { return sent_; }          ///< numbers of `out`
  std::int64_t received() const { return received_; }  ///< numbers of `in`

  /// How many numbers may go out now: those that no message has yet to change.
  std::int64_t may_send() const;
  /// How many numbers may come in now: those in whose place nothing has yet to go out.
  std::int64_t may_receive() const;

  void add_sent(std::int64_t count);
  void add_received(std::int64_t count);

 private:
  void skip_empty();

  const Plan& plan_;
  std::size_t sending_ = 0;    ///< a round
  std::size_t receiving_ = 0;  ///< a round
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
};

}  // namespace dtool::trainer
