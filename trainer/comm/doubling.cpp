// SPDX-License-Identifier: MIT
// Recursive doubling: partners exchange everything they have, and after log2(n) rounds every rank
// has everything (two rounds more if n is not a power of two, folding.h). It needs the fewest
// rounds and the most bytes, so it suits messages whose overhead exceeds their content. Both
// partners add the same two numbers, and a + b has the same bits as b + a, so all ranks get equal
// bits.
#include "trainer/comm/folding.h"

namespace dtool::trainer {

Plan doubling_all_reduce(int rank, int size, std::int64_t elements) {
  const Folding ranks(rank, size);
  const Section all{0, elements};
  Plan plan;
  ranks.fold(plan, elements);
  for (int distance = 1; distance < ranks.size() && !ranks.waits(); distance *= 2) {
    const int partner = ranks.rank_of(ranks.number() ^ distance);
    plan.push_back({partner, all, partner, all, Combine::add});
  }
  ranks.unfold(plan, elements);
  return plan;
}

}  // namespace dtool::trainer
