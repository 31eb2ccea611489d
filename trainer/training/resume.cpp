// SPDX-License-Identifier: MIT
// The words of `--checkpoint`, and what may not differ between the two runs.
#include "trainer/training/resume.h"

#include <fmt/format.h>

#include <optional>

#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_folder.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {

namespace {

/// The newest whole checkpoint of `folder`; nothing if it has none at all. Names each newer one
/// that is spoilt. Throws UsageError if all are.
std::optional<std::filesystem::path> newest_whole(const std::filesystem::path& folder) {
  std::string fault;
  for (const KeptCheckpoint& each : checkpoints_newest_first(folder)) {
    if (!fault.empty()) fmt::print("note: {}; an older one is looked for\n", fault);
    fault = fault_of(CheckpointFile(each.file));
    if (fault.empty()) return each.file;
  }
  if (fault.empty()) return std::nullopt;
  throw UsageError(fmt::format("{}, and no checkpoint beside it is whole", fault));
}

}  // namespace

/// A run that began under a former version does not silently begin anew.
std::filesystem::path checkpoint_of(const CommandLine& options) {
  const std::filesystem::path file = *options.checkpoint;
  if (file == "latest" || file == "auto") {
    const auto folder = checkpoints_of(options);
    if (const auto latest = newest_whole(folder)) return *latest;
    if (const auto former = former_checkpoint(folder)) return *former;
    if (file == "auto") return {};
    throw UsageError(fmt::format("--checkpoint latest: none in {}", folder.string()),
                     "--output_dir names the folder that the training was given");
  }
  if (std::filesystem::is_regular_file(file)) return file;
  throw UsageError(fmt::format("no checkpoint at {}", file.string()));
}

namespace {

void check_fit(const Resumed& resumed, const Progress& fresh, std::size_t stages) {
  const Progress& saved = resumed.progress;
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{} does not fit: {}", resumed.from, why));
  };
  if (saved.stage >= static_cast<std::int64_t>(stages)) {
    refuse(fmt::format("it was written in stage {} of an experiment, this one has {}",
                       saved.stage + 1, stages));
  }
  if (saved.training_samples != fresh.training_samples) {
    refuse(fmt::format("its data had {} training samples, this run's has {}",
                       saved.training_samples, fresh.training_samples));
  }
  if (saved.samples > 0 && saved.seed != fresh.seed) {
    refuse(
        fmt::format("it was written within an epoch that seed {} had shuffled, this run has "
                    "seed {}",
                    saved.seed, fresh.seed));
  }
}

}  // namespace

std::filesystem::path checkpoints_of(const CommandLine& options) {
  return options.output_dir / "checkpoints";
}

Resumed resume_from(const CommandLine& options, const Group& group, Weights& model,
                    Optimizer& optimizer, const Progress& fresh, std::size_t stages) {
  CheckpointFile file;
  if (group.rank == 0) {
    if (const auto path = checkpoint_of(options); !path.empty()) file = CheckpointFile(path);
  }
  CheckpointReader reader(group, "the checkpoint to resume from", std::move(file));
  Resumed resumed;
  if (!reader.has_file()) {
    resumed.progress = fresh;
    return resumed;
  }
  resumed.from = reader.name();
  auto restored = restore(reader, model, optimizer);
  resumed.others = std::move(restored.others);
  Progress& saved = resumed.progress;
  saved = restored.progress;
  resumed.saved_world_size = saved.world_size;
  check_fit(resumed, fresh, stages);
  if (group.rank == 0 && (saved.seed != fresh.seed || saved.world_size != fresh.world_size)) {
    fmt::print(
        "note: the checkpoint is of a run with seed {} on {} ranks, this one has seed {} on {}\n",
        saved.seed, saved.world_size, fresh.seed, fresh.world_size);
  }
  saved.seed = fresh.seed;
  saved.world_size = fresh.world_size;
  return resumed;
}

}  // namespace dtool::trainer
