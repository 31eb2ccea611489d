// SPDX-License-Identifier: MIT
#include "sync/fetched_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = "# dtool fetched the outputs of the run ";
constexpr std::string_view kAfter = " into this folder: they are no code\n*\n";

std::string mark_of(const std::string& run_id) {
  return fmt::format("{}{}{}", kBefore, run_id, kAfter);
}

std::optional<std::string> text_of_mark(const fs::path& folder) {
  constexpr std::size_t kMost = 1000;
  std::error_code fault;
  if (!fs::is_regular_file(folder / kFetchedMark, fault)) return std::nullopt;  // a pipe would wait
  std::ifstream file(folder / kFetchedMark, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMost, '\0');
  file.read(text.data(), kMost);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool has_one_entry(const fs::path& folder) {
  std::error_code fault;
  const fs::directory_iterator files(folder, fault);
  return !fault && std::distance(begin(files), end(files)) == 1;
}

}  // namespace

std::optional<std::string> fetched_run(const fs::path& folder) {
  const std::string text = text_of_mark(folder).value_or("");
  if (!text.starts_with(kBefore) || !text.ends_with(kAfter)) return std::nullopt;
  return text.substr(kBefore.size(), text.size() - kBefore.size() - kAfter.size());
}

bool has_only_half_a_mark(const fs::path& folder, const std::string& run_id) {
  const auto text = text_of_mark(folder);
  return text && has_one_entry(folder) && mark_of(run_id).starts_with(*text);
}

void mark_fetched(const fs::path& folder, const std::string& run_id) {
  // A mark that is written again is empty in between, and stays so on a full disk.
  if (fetched_run(folder) == run_id) return;
  const fs::path path = folder / kFetchedMark;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << mark_of(run_id) << std::flush;
  if (!file)
    throw std::runtime_error(
        fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

void remove_if_only_marked(const fs::path& folder) {
  if (!has_one_entry(folder) || !fetched_run(folder)) return;
  std::error_code fault;
  fs::remove(folder / kFetchedMark, fault);
  fs::remove(folder, fault);
}

}  // namespace dtool::tree_sync
