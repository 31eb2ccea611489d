// SPDX-License-Identifier: MIT
// All-reduce made of point-to-point messages: what each rank sends to whom, round by round, as
// plain data. No message is sent here, so a test can run through a plan for any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

/// Elements [begin, end) of the tensor.
struct Section {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Section&) const = default;
};

enum class Combine {
  add,      ///< received numbers are added to the present ones
  replace,  ///< received numbers replace the present ones
};

inline constexpr int kNobody = -1;

/// One round of one rank: a message out, one in, or both at once. If the two ranges overlap, the
/// message out has the numbers from before the round.
struct Round {
  int send_to = kNobody;
  Section send;
  int receive_from = kNobody;
  Section receive;
  Combine combine = Combine::add;
};

/// A rank's rounds, in order. A message from a to b matches the next one that b expects from a.
using Plan = std::vector<Round>;

/// After it every rank has the sum over all ranks, with equal bits. `way` is one of kAlgorithms.
Plan plan_all_reduce(Way way, int rank, int size, std::int64_t elements);

/// The ranks with which a plan exchanges messages. They do not depend on the number of elements.
std::set<int> peers_in(const Plan& plan);

/// Part number `index` of `elements`, if `parts` share them as evenly as possible.
Section part_of(std::int64_t elements, int parts, int index);

// The arithmetic on numbers that ranks exchange.

/// Adds `count` numbers to those at `into`, or replaces them. The two ranges do not overlap.
void combine(float* into, const float* from, std::size_t count, Combine how);

/// Multiplies each of `count` numbers by `factor`.
void scale(float* numbers, std::size_t count, float factor);

// A rank's progress in its plan, separately for each direction: a message is sent as soon as its
// content is complete, even if earlier ones have not been received, and the other way round. So a
// rank that the scheduler delays for a moment only delays ranks that need its numbers.

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

/// What carries the messages of a plan: our own links, or the library's send and receive.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Runs all rounds of this rank on its `tensor`. Throws std::exception if a peer is gone or too
  /// slow.
  virtual void perform(const Plan& plan, float* tensor) = 0;
};

}  // namespace dtool::trainer
