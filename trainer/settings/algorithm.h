// SPDX-License-Identifier: MIT
// The algorithms of all-reduce and reduce that are made of messages, and their names.
#pragma once

#include <optional>
#include <string_view>

namespace dtool::trainer {

enum class Algorithm { ring, pairwise, halving_doubling, doubling, tree };

inline constexpr Algorithm kAlgorithms[] = {Algorithm::ring, Algorithm::pairwise,
                                            Algorithm::halving_doubling, Algorithm::doubling,
                                            Algorithm::tree};

/// `ring`, `pairwise`, `halving_doubling`, `doubling`, `tree`.
std::string_view to_string(Algorithm algorithm);
std::optional<Algorithm> algorithm_of(std::string_view name);

}  // namespace dtool::trainer
