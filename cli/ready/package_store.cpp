// SPDX-License-Identifier: MIT
#include "cli/ready/package_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal_text.h"
#include "killfiles/whole_file.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/host/versions.h"
#include "ssh/machine/home_folder.h"
#include "ssh/machine/random_hex.h"
#include "ssh/machine/read_pieces.h"
#include "ssh/machine/sha256.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".draft.";

fs::path index_of(const fs::path& folder, const std::string& key) {
  return folder / (key + ".resolved");
}

/// Packages that were not used for 30 days, and what an interrupted dtool left.
void remove_old(const fs::path& used) {
  std::error_code gone;  // another dtool was quicker
  for (const std::string& old : host::mark_used(used)) fs::remove_all(old, gone);
  const auto now = fs::file_time_type::clock::now();
  for (const auto& each : fs::directory_iterator(used.parent_path(), gone)) {
    const bool is_draft = each.path().filename().string().starts_with(kUnfinished);
    if (is_draft && each.last_write_time(gone) < now - std::chrono::hours(24))
      fs::remove_all(each.path(), gone);
  }
}

}  // namespace

PackageStore::PackageStore(const std::string& kind)
    : folder_(ssh::home_folder() / ".dtool" / kind) {}

std::string PackageStore::find(const std::string& key) const {
  std::error_code missing;
  if (!fs::exists(index_of(folder_, key), missing)) return {};
  const std::string hash = host::as_line(killfiles::read_whole(index_of(folder_, key)));
  return host::is_hash(hash) && fs::exists(folder_ / hash / kLockFile, missing) ? hash : "";
}

void PackageStore::remember(const std::string& key, const std::string& hash) const {
  killfiles::write_whole(index_of(folder_, key), hash + "\n");
}

std::string PackageStore::add(
    const std::function<std::string(const fs::path& packages, const fs::path& scratch)>& fill)
    const {
  const fs::path draft = folder_ / (kUnfinished + ssh::random_hex(8));
  try {
    fs::create_directories(draft / "packages");
    fs::permissions(folder_, fs::perms::owner_all);
    const std::string hash = fill(draft / "packages", draft);
    host::flush_disk_of(draft);
    std::error_code taken;  // the same packages as for another file, or another dtool was quicker
    fs::rename(draft / "packages", folder_ / hash, taken);
    fs::remove_all(draft);
    return hash;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(draft, ignored);
    throw;
  }
}

Packages PackageStore::take(const std::string& hash) const {
  const fs::path folder = folder_ / hash;
  remove_old(folder);
  return {hash, tree_sync::tree_of(folder, files_below(folder))};
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_symlink() || !each.is_directory())
      files.push_back(each.path().lexically_relative(folder));
  }
  return files;
}

std::string sha256_of(const fs::path& file) {
  ssh::Sha256 hash;
  ssh::read_pieces(file, [&hash](std::string_view piece) { hash.add(piece); });
  return hash.hex();
}

std::string complaint(const ssh::Written& told) {
  std::vector<std::string> errors;
  std::string last = fmt::format("exit code {}", told.exit_code);
  for (std::string_view rest = told.err; !rest.empty();) {
    const std::string line = without_controls(std::string(host::cut_line(rest)));
    if (line.empty()) continue;
    last = line;
    if (line.starts_with("ERROR: ") && line != "ERROR: Exception:")
      errors.push_back(line.substr(7));
    if (line.starts_with("error: ")) errors.push_back(line.substr(7));
  }
  constexpr std::size_t kMost = 3;
  if (errors.size() > kMost) errors.resize(kMost);
  if (const std::string line = host::explaining_line(told.err); errors.empty() && !line.empty())
    return without_controls(line);
  return errors.empty() ? last : fmt::format("{}", fmt::join(errors, "; "));
}

}  // namespace dtool::cli
