// SPDX-License-Identifier: MIT
// The files of a run's checkpoints: writes them atomically, finds them, and deletes old ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtool::trainer {

/// Writes `content` to `file` so that at every instant the file is absent, the former one, or
/// complete: a temporary file beside it, fsync, rename, fsync of the folder. Throws
/// std::system_error.
void write_whole(const std::filesystem::path& file, const std::string& content);

/// Throws std::runtime_error if the file cannot be read.
std::string read_whole(const std::filesystem::path& file);

/// `folder/step_000001876.pt`.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t step);

/// An existing checkpoint.
struct KeptCheckpoint {
  std::filesystem::path file;
  std::int64_t step = 0;
  std::filesystem::file_time_type written;
};

/// The checkpoints of `folder`, by step; none if there is no such folder.
std::vector<KeptCheckpoint> list_checkpoints(const std::filesystem::path& folder);

/// The checkpoint of `folder` that was written last; absent if there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// Deletes the checkpoints of steps up to `step`, except the newest `keep` of them, and the
/// temporary files of killed writers.
void thin_out(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep);

}  // namespace dtool::trainer
