// SPDX-License-Identifier: MIT
// The files of a run's checkpoints: writes them atomically, finds them, and deletes old ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace dtool::trainer {

/// `folder/step_000001876.safetensors`.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t step);

/// The same for the best model: `folder/best.safetensors`.
std::filesystem::path best_checkpoint_file(const std::filesystem::path& folder);

/// An existing checkpoint.
struct KeptCheckpoint {
  std::filesystem::path file;
  std::int64_t step = 0;
  std::filesystem::file_time_type written;
};

/// The checkpoints of `folder`, by step; none if there is no such folder. Throws std::system_error
/// if it cannot be read.
std::vector<KeptCheckpoint> list_checkpoints(const std::filesystem::path& folder);

/// The same, by the time at which they were written; the newest comes first.
std::vector<KeptCheckpoint> checkpoints_newest_first(const std::filesystem::path& folder);

/// A checkpoint of `folder` in the format of former versions, which is not read; absent if there is
/// none.
std::optional<std::filesystem::path> former_checkpoint(const std::filesystem::path& folder);

/// Deletes the checkpoints of steps up to `step`, except the newest `keep` of them, and the
/// temporary files of killed writers.
void thin_out(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep);

}  // namespace dtool::trainer
