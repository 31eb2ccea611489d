// Recursive doubling: partners exchange all they have, and after log2(n) rounds everybody has
// everything (n no power of two: two rounds more, folding.h). The fewest rounds and the most bytes,
// so the choice where a message costs more than what is in it. Both partners add the same two
// numbers, and a + b has the same bits as b + a, so the ranks agree to the bit.
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
