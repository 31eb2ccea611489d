// SPDX-License-Identifier: MIT
#include "cli/run/code_tree.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/action.h"
#include "ssh/machine/home_folder.h"
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
  const std::filesystem::path inside = here.lexically_relative(home());
  const bool is_inside = !inside.empty() && inside != "." && *inside.begin() != "..";
  return "~/" + (is_inside ? inside : here.filename()).string();
}

std::string outputs_inside(const std::string& output_dir) {
  const std::filesystem::path output = std::filesystem::path(output_dir + "/").lexically_normal();
  const bool is_inside = output.is_relative() && *output.begin() != ".." && *output.begin() != "~";
  return is_inside ? output.string() : "";
}

void require_code_tree() {
  const std::filesystem::path here = current_folder();
  if (here == home() || here == here.root_path()) {
    throw UsageError(fmt::format("the current folder {} is no code tree to send", here.string()),
                     "change into the tree's folder, or give --no_sync");
  }
}

tree_sync::Tree read_code_tree(CodeChoice choice) {
  require_code_tree();
  const std::filesystem::path here = current_folder();
  for (const std::string& file : choice.secrets) {
    const auto inside = std::filesystem::weakly_canonical(file).lexically_relative(here);
    if (!inside.empty() && *inside.begin() != "..") choice.excludes.push_back(exactly(inside));
  }
  const std::string outputs = outputs_inside(choice.output_dir);
  if (!outputs.empty()) choice.excludes.push_back("/" + outputs);
  for (std::string& include : choice.includes) {
    std::string name = (here / include).lexically_normal().lexically_relative(here).string();
    while (name.ends_with('/')) name.pop_back();
    if (name.starts_with("..") || name == ".") {
      throw UsageError(fmt::format("--include {} is not below the current folder", include),
                       "what is elsewhere goes to the hosts with --data or dtool copy");
    }
    include = std::move(name);
  }
  return tree_sync::read_tree(here, choice.excludes, choice.includes);
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
