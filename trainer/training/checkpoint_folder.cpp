// SPDX-License-Identifier: MIT
// Only rank 0 writes here, so a folder has one writer.
#include "trainer/training/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

namespace dtool::trainer {
namespace {

constexpr const char* kTemporary = ".partial";
constexpr const char* kEnding = ".safetensors";
constexpr const char* kFormerEnding = ".pt";

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw std::system_error(errno, std::generic_category(), "cannot write " + file.string());
}

void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder);
  fsync(descriptor);  // some network file systems refuse it for folders, and then need none
  close(descriptor);
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const auto part = write(descriptor, bytes.data(), bytes.size());
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) fail(file);
    bytes.remove_prefix(static_cast<std::size_t>(part));
  }
}

void write_and_flush(const std::filesystem::path& file,
                     const std::function<void(const Sink&)>& write) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(file);
  try {
    write([&](std::string_view bytes) { write_all(descriptor, bytes, file); });
  } catch (...) {
    close(descriptor);
    throw;
  }
  const bool flushed = fsync(descriptor) == 0;
  if (close(descriptor) != 0 || !flushed) fail(file);
}

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

void write_whole(const std::filesystem::path& file, const std::string& content) {
  write_whole(file, [&](const Sink& sink) { sink(content); });
}

void write_whole(const std::filesystem::path& file, const std::function<void(const Sink&)>& write) {
  std::filesystem::path temporary = file;
  temporary += kTemporary;
  try {
    write_and_flush(temporary, write);
    std::filesystem::rename(temporary, file);
  } catch (...) {
    // On a full disk its room is wanted, for the line that says so among others.
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  flush_folder(file.parent_path().empty() ? "." : file.parent_path());
}

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
