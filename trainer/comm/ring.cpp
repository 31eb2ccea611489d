// SPDX-License-Identifier: MIT
// The ring: in each round a rank sends a part of the tensor to the next rank and receives one from
// the previous rank. There are 2 (n - 1) rounds, and each rank sends 2 (n - 1) / n of the tensor:
// the fewest bytes possible, and the most rounds. P. Patarasuk and X. Yuan, Bandwidth optimal
// all-reduce algorithms for clusters of workstations (2009).
#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {
namespace {

/// After it, rank r has the sum of part r + 1.
Plan ring_reduce_scatter(int rank, int size, std::int64_t elements) {
  Plan plan;
  const auto part = [&](int index) { return part_of(elements, size, (index + size) % size); };
  for (int round = 0; round < size - 1; ++round) {
    plan.push_back({(rank + 1) % size, part(rank - round), (rank + size - 1) % size,
                    part(rank - round - 1), Combine::add});
  }
  return plan;
}

}  // namespace

Plan ring_all_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = ring_reduce_scatter(rank, size, elements);
  const auto part = [&](int index) { return part_of(elements, size, (index + size) % size); };
  for (int round = 0; round < size - 1; ++round) {
    plan.push_back({(rank + 1) % size, part(rank + 1 - round), (rank + size - 1) % size,
                    part(rank - round), Combine::replace});
  }
  return plan;
}

Plan ring_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = ring_reduce_scatter(rank, size, elements);
  const auto owned_by = [&](int owner) { return part_of(elements, size, (owner + 1) % size); };
  if (rank != 0) {
    plan.push_back({0, owned_by(rank), kNobody, {}, Combine::replace});
    return plan;
  }
  for (int owner = 1; owner < size; ++owner) {
    plan.push_back({kNobody, {}, owner, owned_by(owner), Combine::replace});
  }
  return plan;
}

}  // namespace dtool::trainer
