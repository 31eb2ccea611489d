// Pairwise exchange: each rank sends every other one the part which that one adds up, and then its
// own part's sum. As few bytes as the ring, and a rank waits only twice: for everybody's parts, and
// for everybody's sums. Its 2 (n - 1) messages do not wait for each other, so this is the choice
// where a rank's answer costs more than a message: on busy hosts, or far ones. R. Thakur, R.
// Rabenseifner and W. Gropp, Optimization of Collective Communication Operations in MPICH (2005),
// section 4.3, for the first half.
#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {
namespace {

/// After it, rank r has the sum of part r.
Plan reduce_scatter(int rank, int size, std::int64_t elements) {
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
  Plan plan = reduce_scatter(rank, size, elements);
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    plan.push_back(
        {to, part_of(elements, size, rank), from, part_of(elements, size, from), Combine::replace});
  }
  return plan;
}

Plan pairwise_reduce(int rank, int size, std::int64_t elements) {
  Plan plan = reduce_scatter(rank, size, elements);
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
