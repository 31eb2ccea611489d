// SPDX-License-Identifier: MIT
#include "trainer/settings/algorithm.h"

#include <stdexcept>

namespace dtool::trainer {

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::halving_doubling:
      return "halving_doubling";
    case Algorithm::doubling:
      return "doubling";
    case Algorithm::tree:
      return "tree";
  }
  throw std::logic_error("no such algorithm");
}

std::optional<Algorithm> algorithm_of(std::string_view name) {
  for (const Algorithm each : kAlgorithms) {
    if (to_string(each) == name) return each;
  }
  return std::nullopt;
}

}  // namespace dtool::trainer
