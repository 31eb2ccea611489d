// SPDX-License-Identifier: MIT
// The binomial tree: sums go up to rank 0, the result goes down. 2 log2(n) rounds of the whole
// tensor, but half of the ranks have only one message to send and one to receive.
#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

Plan tree_reduce(int rank, int size, std::int64_t elements) {
  const Section all{0, elements};
  Plan plan;
  for (int distance = 1; distance < size; distance *= 2) {
    if ((rank & distance) != 0) {
      plan.push_back({rank - distance, all, kNobody, {}, Combine::add});
      break;
    }
    if (rank + distance < size) plan.push_back({kNobody, {}, rank + distance, all, Combine::add});
  }
  return plan;
}

Plan tree_all_reduce(int rank, int size, std::int64_t elements) {
  const Plan up = tree_reduce(rank, size, elements);
  Plan plan = up;
  // Down is up backwards.
  for (auto each = up.rbegin(); each != up.rend(); ++each) {
    plan.push_back(
        {each->receive_from, each->receive, each->send_to, each->send, Combine::replace});
  }
  return plan;
}

}  // namespace dtool::trainer
