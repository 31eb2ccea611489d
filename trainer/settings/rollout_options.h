// SPDX-License-Identifier: MIT
// The options of `dtool-trainer rollout`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::trainer {

/// Where episodes come from: those that a policy trains on, or those that it is validated on.
enum class EpisodeSet { training, validation };

/// What chooses the actions: a policy that knows the house, chance, or a checkpoint's network.
enum class PolicyKind { shortest, random, checkpoint };

enum class PictureFormat { text, svg };

struct RolloutOptions {
  /// Absent: `checkpoint` if one is named, else `shortest`.
  std::optional<PolicyKind> policy;
  EpisodeSet set = EpisodeSet::validation;
  /// Its number in a validation: the first episode of the sampler with this number.
  std::int64_t episode = 0;
  std::optional<std::uint64_t> seed;            ///< absent: validation's own; for training houses 0
  std::optional<std::filesystem::path> output;  ///< absent: standard output
  std::optional<PictureFormat> format;          ///< absent: by the name of `output`, else text
  enum class Shown { at_the_end, step_by_step } shown = Shown::at_the_end;
};

/// Throw UsageError.
PolicyKind parse_policy(std::string_view text);
EpisodeSet parse_episode_set(std::string_view text);
PictureFormat parse_picture_format(std::string_view text);

/// Fills values that depend on several flags; `checkpoint` is the value of --checkpoint. Throws
/// UsageError if flags do not go together.
void complete(RolloutOptions& options, const std::optional<std::string>& checkpoint);

/// Throws UsageError: the workload of the experiment has no episodes.
[[noreturn]] void refuse_rollout(const std::filesystem::path& experiment);

}  // namespace dtool::trainer
