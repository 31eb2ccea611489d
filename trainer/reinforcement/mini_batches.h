// SPDX-License-Identifier: MIT
// Which samplers learn together.
#pragma once

#include <cstdint>
#include <vector>

namespace dtool::trainer {

/// The samplers of a rank: global numbers `first` to `first` + `count` - 1.
struct SamplerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// `parts` mini-batches of whole sequences: for each one the rank's samplers in it, as rising
/// indices from 0. Of every group of `parts` samplers with neighbouring numbers, one goes to each
/// mini-batch, by a permutation that depends only on (`seed`, `pass`, the group). So all ranks'
/// mini-batches together are the same, however samplers are distributed over ranks. `pass` counts
/// the passes over experience. If a rank's samplers do not begin and end with a group, its
/// mini-batches differ in size.
std::vector<std::vector<std::int64_t>> mini_batches(const SamplerRange& samplers,
                                                    std::int64_t parts, std::uint64_t seed,
                                                    std::int64_t pass);

}  // namespace dtool::trainer
