// Which samplers learn together.
#pragma once

#include <cstdint>
#include <vector>

namespace dtool::trainer {

/// The samplers of a rank: numbers `first` to `first` + `count` - 1 of all ranks'.
struct SamplerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// `parts` mini-batches of whole sequences: for each the indices, from 0, of the rank's samplers in
/// it, rising. Of every `parts` samplers with neighbouring numbers one goes to each mini-batch, by
/// a permutation that depends on (`seed`, `pass`, the group) only: however samplers are dealt out
/// to ranks, all ranks' mini-batches together are the same. `pass` counts the passes over
/// experience. Where ranks do not begin and end with a group, a rank's mini-batches differ in size.
std::vector<std::vector<std::int64_t>> mini_batches(const SamplerRange& samplers,
                                                    std::int64_t parts, std::uint64_t seed,
                                                    std::int64_t pass);

}  // namespace dtool::trainer
