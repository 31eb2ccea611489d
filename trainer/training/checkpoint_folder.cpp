// SPDX-License-Identifier: MIT
// Only rank 0 writes here, so a folder has one writer.
#include "trainer/training/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/report/written_file.h"

namespace dtool::trainer {
namespace {

constexpr const char* kEnding = ".safetensors";
constexpr const char* kFormerEnding = ".pt";

/// The step in the name of a checkpoint with this ending; absent for other files.
std::optional<std::int64_t> step_of(const std::filesystem::path& file, std::string_view ending) {
  constexpr std::string_view kBegin = "step_";
  const std::string name = file.filename().string();
  if (!name.starts_with(kBegin) || !name.ends_with(ending)) return std::nullopt;
  std::int64_t step = 0;
  const char* end = name.data() + name.size() - ending.size();
  const auto [stop, error] = std::from_chars(name.data() + kBegin.size(), end, step);
  if (error != std::errc() || stop != end) return std::nullopt;
  return step;
}

[[noreturn]] void fail_to_read(const std::filesystem::path& path, std::error_code why) {
  throw std::system_error(why, "cannot read " + path.string());
}

/// Nothing if there is no such folder. One that cannot be read is not empty: a run that takes it
/// for empty begins anew, and thins out what it had.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder) {
  std::error_code fault;
  const std::filesystem::directory_iterator entries(folder, fault);
  if (fault == std::errc::no_such_file_or_directory) return {};
  if (fault) fail_to_read(folder, fault);
  return {begin(entries), end(entries)};
}

}  // namespace

std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t step) {
  return folder / fmt::format("step_{:09}{}", step, kEnding);
}

std::filesystem::path best_checkpoint_file(const std::filesystem::path& folder) {
  return folder / fmt::format("best{}", kEnding);
}

std::vector<KeptCheckpoint> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<KeptCheckpoint> kept;
  for (const auto& each : entries_of(folder)) {
    const auto step = step_of(each.path(), kEnding);
    if (!step) continue;
    std::error_code fault;
    const auto written = each.last_write_time(fault);
    if (fault == std::errc::no_such_file_or_directory) continue;  // thinned out by its writer since
    if (fault) fail_to_read(each.path(), fault);
    kept.push_back({each.path(), *step, written});
  }
  std::ranges::sort(kept, {}, &KeptCheckpoint::step);
  return kept;
}

std::vector<KeptCheckpoint> checkpoints_newest_first(const std::filesystem::path& folder) {
  auto kept = list_checkpoints(folder);
  const auto age = [](const KeptCheckpoint& each) { return std::pair(each.written, each.step); };
  std::ranges::sort(kept, std::greater(), age);
  return kept;
}

std::optional<std::filesystem::path> former_checkpoint(const std::filesystem::path& folder) {
  for (const auto& each : entries_of(folder)) {
    if (step_of(each.path(), kFormerEnding)) return each.path();
  }
  return std::nullopt;
}

void thin_out(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep) {
  std::vector<std::int64_t> steps;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() == kTemporary) std::filesystem::remove(each.path());
    if (const auto its_step = step_of(each.path(), kEnding); its_step && *its_step <= step) {
      steps.push_back(*its_step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  for (std::size_t i = static_cast<std::size_t>(keep); i < steps.size(); ++i) {
    std::filesystem::remove(checkpoint_file(folder, steps[i]));
  }
}

}  // namespace dtool::trainer
