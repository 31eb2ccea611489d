// SPDX-License-Identifier: MIT
#include "trainer/settings/rollout_options.h"

#include <fmt/format.h>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

PolicyKind parse_policy(std::string_view text) {
  if (text == "shortest") return PolicyKind::shortest;
  if (text == "random") return PolicyKind::random;
  if (text == "checkpoint") return PolicyKind::checkpoint;
  throw UsageError(fmt::format("--policy: there is no '{}'", text),
                   "there are shortest, random and checkpoint");
}

EpisodeSet parse_episode_set(std::string_view text) {
  if (text == "training") return EpisodeSet::training;
  if (text == "validation") return EpisodeSet::validation;
  throw UsageError(fmt::format("--set: '{}' is neither training nor validation", text));
}

PictureFormat parse_picture_format(std::string_view text) {
  if (text == "text") return PictureFormat::text;
  if (text == "svg") return PictureFormat::svg;
  throw UsageError(fmt::format("--format: '{}' is neither text nor svg", text));
}

void complete(RolloutOptions& options, const std::optional<std::string>& checkpoint) {
  if (!options.policy) {
    options.policy = checkpoint ? PolicyKind::checkpoint : PolicyKind::shortest;
  }
  if (checkpoint && *options.policy != PolicyKind::checkpoint) {
    throw UsageError("--checkpoint is for the policy of a network",
                     "drop it, or give --policy checkpoint");
  }
  const bool is_svg_file = options.output && options.output->extension() == ".svg";
  if (!options.format) options.format = is_svg_file ? PictureFormat::svg : PictureFormat::text;
  if (options.shown == RolloutOptions::Shown::at_the_end) return;
  if (options.output || *options.format == PictureFormat::svg) {
    throw UsageError("--watch shows an episode in the terminal, not in a file or as svg",
                     "drop --watch, or drop --output and --format");
  }
}

void refuse_rollout(const std::filesystem::path& experiment) {
  throw UsageError(
      fmt::format("{}: its workload has no episodes that rollout could show", experiment.string()),
      "give an experiment of reinforcement learning");
}

}  // namespace dtool::trainer
