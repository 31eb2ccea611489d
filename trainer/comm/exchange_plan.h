// SPDX-License-Identifier: MIT
// All-reduce made of point-to-point messages: what each rank sends to whom, round by round, as
// plain data. No message is sent here, so a test can run through a plan for any number of ranks.
#pragma once

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

/// After it every rank has the sum over all ranks, with equal bits.
Plan plan_all_reduce(Algorithm algorithm, int rank, int size, std::int64_t elements);

/// The ranks with which a plan exchanges messages. They do not depend on the number of elements.
std::set<int> peers_in(const Plan& plan);

/// Part number `index` of `elements`, if `parts` share them as evenly as possible.
Section part_of(std::int64_t elements, int parts, int index);

}  // namespace dtool::trainer
