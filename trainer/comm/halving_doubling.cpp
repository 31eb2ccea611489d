// SPDX-License-Identifier: MIT
// Recursive halving and doubling: partners exchange halves of the range that they still share,
// until each rank has the sum of one part; then the same way back. It needs 2 log2(n) rounds and as
// few bytes as the ring if n is a power of two; otherwise two more rounds of the whole tensor
// (folding.h). R. Rabenseifner, Optimization of Collective Reduction Operations (2004).
#include "trainer/comm/folding.h"

namespace dtool::trainer {
namespace {

struct Halves {
  Section kept;
  Section given;
};

/// The rank whose number has the bit `distance` keeps the upper half.
Halves halves_of(const Section& range, int number, int distance) {
  const std::int64_t middle = range.begin + range.size() / 2;
  const Section lower{range.begin, middle};
  const Section upper{middle, range.end};
  return (number & distance) != 0 ? Halves{upper, lower} : Halves{lower, upper};
}

/// Adds the rounds of the halving; returns what was kept and given in each.
std::vector<Halves> halve(Plan& plan, const Folding& ranks, std::int64_t elements) {
  std::vector<Halves> rounds;
  Section shared{0, elements};
  for (int distance = ranks.size() / 2; distance > 0; distance /= 2) {
    const int partner = ranks.rank_of(ranks.number() ^ distance);
    rounds.push_back(halves_of(shared, ranks.number(), distance));
    shared = rounds.back().kept;
    plan.push_back({partner, rounds.back().given, partner, shared, Combine::add});
  }
  return rounds;
}

}  // namespace

Plan halving_doubling_all_reduce(int rank, int size, std::int64_t elements) {
  const Folding ranks(rank, size);
  Plan plan;
  ranks.fold(plan, elements);
  if (!ranks.waits()) {
    const auto rounds = halve(plan, ranks, elements);
    int distance = 1;
    for (auto round = rounds.rbegin(); round != rounds.rend(); ++round, distance *= 2) {
      const int partner = ranks.rank_of(ranks.number() ^ distance);
      plan.push_back({partner, round->kept, partner, round->given, Combine::replace});
    }
  }
  ranks.unfold(plan, elements);
  return plan;
}

Plan halving_doubling_reduce(int rank, int size, std::int64_t elements) {
  const Folding ranks(rank, size);
  Plan plan;
  ranks.fold(plan, elements);
  if (ranks.waits()) return plan;
  const auto rounds = halve(plan, ranks, elements);
  int distance = 1;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round, distance *= 2) {
    const int partner = ranks.rank_of(ranks.number() ^ distance);
    if ((ranks.number() & distance) != 0) {
      plan.push_back({partner, round->kept, kNobody, {}, Combine::replace});
      break;
    }
    plan.push_back({kNobody, {}, partner, round->given, Combine::replace});
  }
  return plan;
}

}  // namespace dtool::trainer
