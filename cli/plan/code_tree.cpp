// SPDX-License-Identifier: MIT
#include "cli/plan/code_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "cli/action.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

std::filesystem::path home() {
  return std::filesystem::weakly_canonical(ssh::home_folder());
}

/// The pattern of --exclude that takes this file of the tree alone.
std::string exactly(const std::filesystem::path& file) {
  std::string pattern = "/";
  for (const char each : file.string()) {
    const bool is_special = each == '*' || each == '?' || each == '[' || each == '\\';
    pattern += is_special ? fmt::format("\\{}", each) : std::string(1, each);
  }
  return pattern;
}

/// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
bool is_lfs_pointer(const std::filesystem::path& file, std::uint64_t size) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/v1\n";
  constexpr std::uint64_t kMostBytes = 1024;
  if (size < kBegin.size() || size >= kMostBytes) return false;
  std::ifstream stream(file, std::ios::binary);
  std::string begin(kBegin.size(), '\0');
  return stream.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kBegin;
}

}  // namespace

std::filesystem::path current_folder() {
  std::error_code error;
  std::filesystem::path here = std::filesystem::current_path(error);
  if (error) throw UsageError("the current folder was deleted", "change into the code's folder");
  return here;
}

std::string code_folder(const ssh::Host& host, const std::string& code_path,
                        const std::filesystem::path& here) {
  if (!code_path.empty()) return ssh::is_anchored(code_path) ? code_path : "~/" + code_path;
  if (host.is_local) return here;
  const auto inside = ssh::below(here, home());
  return "~/" + (inside && *inside != "." ? *inside : here.filename()).string();
}

std::string outputs_inside(const std::string& output_dir) {
  const std::filesystem::path output = std::filesystem::path(output_dir + "/").lexically_normal();
  const bool is_inside = output.is_relative() && *output.begin() != ".." && *output.begin() != "~";
  return is_inside ? output.string() : "";
}

void require_code_tree() {
  const std::filesystem::path here = current_folder();
  if (here == home() || here == here.root_path() || here == "/tmp") {
    throw UsageError(fmt::format("the current folder {} is no code tree to send", here.string()),
                     "change into the tree's folder, or give --no_sync");
  }
}

tree_sync::Tree read_code_tree(CodeChoice choice) {
  require_code_tree();
  const std::filesystem::path here = current_folder();
  for (const std::string& file : choice.secrets) {
    const auto inside = ssh::below(std::filesystem::weakly_canonical(file), here);
    if (inside) choice.excludes.push_back(exactly(*inside));
  }
  const std::string outputs = outputs_inside(choice.output_dir);
  if (!outputs.empty()) choice.excludes.push_back("/" + outputs);
  for (std::string& include : choice.includes) {
    std::string name = (here / include).lexically_normal().lexically_relative(here).string();
    while (name.ends_with('/')) name.pop_back();
    if (name == "." || name == ".." || name.starts_with("../")) {
      throw UsageError(fmt::format("--include {} is not below the current folder", include),
                       "what is elsewhere goes to the hosts with --data or dtool copy");
    }
    include = std::move(name);
  }
  return tree_sync::read_tree(here, choice.excludes, choice.includes);
}

std::vector<std::string> notes_on_tree(const tree_sync::Tree& tree,
                                       const std::vector<std::string>& typed) {
  std::vector<std::string> notes;
  for (const std::string& each : tree.unused_excludes) {
    if (std::ranges::count(typed, each) > 0)
      notes.push_back(fmt::format("--exclude {} matches nothing that would be sent", each));
  }
  std::error_code unseen;
  if (std::filesystem::exists(tree.root / ".gitignore", unseen) &&
      !tree_sync::find_checkout(tree.root))
    notes.emplace_back(
        "the .gitignore here does not count, since the folder is no git checkout; git init makes "
        "it one");
  std::size_t pointers = 0;
  std::string first;
  if (std::filesystem::exists(tree.root / ".gitattributes", unseen)) {
    for (std::size_t i = 0; i < tree.files.size(); ++i) {
      if (!is_lfs_pointer(tree.root / tree.files[i], tree.looks[i].size)) continue;
      if (pointers++ == 0) first = tree.files[i];
    }
  }
  if (pointers > 0)
    notes.push_back(
        fmt::format("{}{} of Git LFS in place of the file; git lfs pull brings it", first,
                    pointers == 1 ? " is a pointer"
                                  : fmt::format(" and {} others are pointers", pointers - 1)));
  return notes;
}

std::string note_on_size(const tree_sync::Tree& tree) {
  constexpr std::uint64_t kMuch = 100'000'000;
  constexpr std::uint64_t kMuchWithoutGit = 20'000'000;
  constexpr std::size_t kMostNamed = 3;
  if (tree.bytes <= kMuchWithoutGit || (tree.bytes <= kMuch && tree_sync::find_checkout(tree.root)))
    return "";
  const auto megabytes = [](std::uint64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  };
  std::map<std::string, std::uint64_t> bytes;
  for (std::size_t i = 0; i < tree.files.size(); ++i)
    bytes[tree.files[i].substr(0, tree.files[i].find('/'))] += tree.looks[i].size;
  std::vector<std::pair<std::uint64_t, std::string>> largest;
  for (const auto& [name, size] : bytes) largest.emplace_back(size, name);
  std::ranges::sort(largest, std::greater());
  if (largest.size() > kMostNamed) largest.resize(kMostNamed);
  std::string named;
  for (const auto& [size, name] : largest)
    named += fmt::format("{}{} {}", named.empty() ? "" : ", ", name, megabytes(size));
  return fmt::format("the code has {}: {}; data goes with --data, and --exclude leaves it out",
                     megabytes(tree.bytes), named);
}

std::optional<tree_sync::GitState> state_of_code_tree(const std::string& output_dir) {
  return tree_sync::git_state(std::filesystem::current_path(), outputs_inside(output_dir));
}

RecordedCode record_code(const tree_sync::Tree& tree,
                         const std::optional<tree_sync::GitState>& state) {
  constexpr std::size_t kMostDiff = 1U << 20U;
  constexpr std::size_t kMostNames = 1000;
  RecordedCode code;
  code.folder = tree.root;
  code.files = tree.files.size();
  if (!state) return code;
  code.commit = state->commit;
  code.branch = state->branch;
  code.is_dirty = state->is_dirty;
  code.untracked = state->untracked;
  if (code.untracked.size() > kMostNames) code.untracked.resize(kMostNames);
  tree_sync::GitDiff diff = tree_sync::git_diff(tree.root, *state, tree.files, kMostDiff);
  code.deleted = std::move(diff.deleted);
  if (code.deleted.size() > kMostNames) code.deleted.resize(kMostNames);
  code.diff = std::move(diff.text);
  code.diff_left_out = std::move(diff.left_out);
  return code;
}

}  // namespace dtool::cli
