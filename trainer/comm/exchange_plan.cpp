// SPDX-License-Identifier: MIT
// Chooses among the algorithms; each has its own file.
#include "trainer/comm/exchange_plan.h"

#include <algorithm>
#include <stdexcept>

namespace dtool::trainer {

Plan plan_all_reduce(Algorithm algorithm, int rank, int size, std::int64_t elements) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_all_reduce(rank, size, elements);
    case Algorithm::pairwise:
      return pairwise_all_reduce(rank, size, elements);
    case Algorithm::halving_doubling:
      return halving_doubling_all_reduce(rank, size, elements);
    case Algorithm::doubling:
      return doubling_all_reduce(rank, size, elements);
    case Algorithm::tree:
      return tree_all_reduce(rank, size, elements);
  }
  throw std::logic_error("no such algorithm");
}

Plan plan_reduce(Algorithm algorithm, int rank, int size, std::int64_t elements) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_reduce(rank, size, elements);
    case Algorithm::pairwise:
      return pairwise_reduce(rank, size, elements);
    case Algorithm::halving_doubling:
      return halving_doubling_reduce(rank, size, elements);
    case Algorithm::tree:
      return tree_reduce(rank, size, elements);
    case Algorithm::doubling:
      break;
  }
  throw std::logic_error("there is no reduce by doubling");
}

std::set<int> peers_in(const Plan& plan) {
  std::set<int> peers;
  for (const Round& each : plan) peers.insert({each.send_to, each.receive_from});
  peers.erase(kNobody);
  return peers;
}

Section part_of(std::int64_t elements, int parts, int index) {
  const std::int64_t least = elements / parts;
  const std::int64_t longer = elements % parts;  // this many parts have one more
  const auto begin_of = [&](std::int64_t part) { return part * least + std::min(part, longer); };
  return {begin_of(index), begin_of(index + 1)};
}

}  // namespace dtool::trainer
