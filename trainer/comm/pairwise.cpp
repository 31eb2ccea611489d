// SPDX-License-Identifier: MIT
// Pairwise exchange: each rank sends every other rank the part that the other one adds up, and then
// the sum of its own part. It sends as few bytes as the ring, and a rank waits only twice: for all
// parts, and for all sums. Its 2 (n - 1) messages do not wait for each other, so it suits ranks
// that answer slowly, because hosts are busy or far away. First half: R. Thakur, R. Rabenseifner
// and W. Gropp, Optimization of Collective Communication Operations in MPICH (2005), section 4.3.
#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {
namespace {

/// After it, rank r has the sum of part r.
Plan pairwise_reduce_scatter(int rank, int size, std::int64_t elements) {
  Plan plan;
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    plan.push_back(
        {to, part_of(elements, size, to), from, part_of(elements, size, rank), Combine::add});
  }
  return plan;
}

}  // namespace

Plan pairwise_all_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = pairwise_reduce_scatter(rank, size, elements);
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    plan.push_back(
        {to, part_of(elements, size, rank), from, part_of(elements, size, from), Combine::replace});
  }
  return plan;
}

Plan pairwise_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = pairwise_reduce_scatter(rank, size, elements);
  if (rank != 0) {
    plan.push_back({0, part_of(elements, size, rank), kNobody, {}, Combine::replace});
    return plan;
  }
  for (int from = 1; from < size; ++from) {
    plan.push_back({kNobody, {}, from, part_of(elements, size, from), Combine::replace});
  }
  return plan;
}

}  // namespace dtool::trainer
