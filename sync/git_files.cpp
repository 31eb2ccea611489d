// SPDX-License-Identifier: MIT
#include "sync/git_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ssh/machine/files.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/wire/words.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

/// Git is asked about `folder` alone: a hook that calls dtool points elsewhere with variables. Nor
/// does it fetch what the checkout lacks, by a program that the checkout names. Nothing if git
/// is not installed.
std::optional<ssh::Written> run_git(const std::vector<std::string>& arguments,
                                    const std::string& variable = "GIT_NO_REPLACE_OBJECTS=1") {
  return ssh::run_to_end(arguments,
                         {"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_ALLOW_PROTOCOL=none",
                          "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", variable},
                         {"GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_COMMON_DIR=",
                          "GIT_OBJECT_DIRECTORY=", "GIT_PREFIX=", "GIT_INTERNAL_", "LC_ALL=",
                          "LANGUAGE=", "GIT_IMPLICIT_WORK_TREE=", "GIT_LITERAL_PATHSPECS=",
                          "GIT_ALLOW_PROTOCOL=", "GIT_PROTOCOL_FROM_USER=", "GIT_NO_LAZY_FETCH="});
}

/// The line of git's complaints that says most: the first `fatal:`, else the first.
std::string gits_complaint(std::string_view err) {
  const std::size_t fatal = err.find("fatal: ");
  if (fatal != err.npos) err.remove_prefix(fatal + std::strlen("fatal: "));
  return std::string(err.substr(0, err.find('\n')));
}

[[noreturn]] void refuse(const fs::path& folder, const ssh::Written& answer) {
  std::string hint = fmt::format("see what `git -C '{}' status` says", folder.native());
  if (answer.err.find("dubious ownership") != std::string::npos) {
    hint = fmt::format("if you trust it: git config --global --add safe.directory '{}'",
                       find_checkout(folder).value_or(folder).native());
  }
  std::string reason = gits_complaint(answer.err);
  if (reason.empty()) reason = fmt::format("exit code {}", answer.exit_code);
  throw std::runtime_error(
      fmt::format("git cannot list the files of {}: {}\nhint: {}", folder.native(), reason, hint));
}

}  // namespace

std::optional<fs::path> find_checkout(const fs::path& folder) {
  struct stat here {};
  if (::stat(folder.c_str(), &here) != 0) return std::nullopt;
  const dev_t device = here.st_dev;
  for (fs::path path = folder;; path = path.parent_path()) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || status.st_dev != device) return std::nullopt;
    if (::lstat((path / ".git").c_str(), &status) == 0) return path;
    if (path == path.parent_path()) return std::nullopt;
  }
}

namespace {

/// git in `folder`, which it leaves as it is. A checkout's own configuration may come from somebody
/// else with it, and name programs to run, or another folder whose files it would show
/// (core.worktree): with `root`, the files are those of `root`.
std::vector<std::string> git_in(const fs::path& folder, const std::vector<std::string>& arguments,
                                const std::optional<fs::path>& root = std::nullopt) {
  std::vector<std::string> words = {"git", "--no-optional-locks",
                                    "-c",  "core.fsmonitor=false",
                                    "-c",  "core.hooksPath=/dev/null",
                                    "-c",  "safe.bareRepository=explicit",
                                    "-C",  folder.native()};
  if (root) words.push_back("--work-tree=" + root->native());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// An index that somebody else wrote may name anything.
void require_inside(std::string_view name) {
  const bool leads_out = std::ranges::any_of(fs::path(name), [](const fs::path& part) {
    return part.empty() || part == "." || part == ".." || part == ".git" || part == "/";
  });
  if (!leads_out && !name.empty()) return;
  throw std::runtime_error(fmt::format(
      "git names the file '{}', which is not in the folder\nhint: the checkout's index is "
      "broken, or was made by an attacker who wants your other files",
      name));
}

}  // namespace

std::vector<std::string> git_files(const fs::path& folder) {
  const auto answer = run_git(
      git_in(folder, {"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."}));
  if (!answer) {
    throw std::runtime_error(
        fmt::format("git is not installed, and {} is a git checkout: only git knows which of its "
                    "files belong to it\nhint: apt-get install git",
                    folder.native()));
  }
  if (answer->exit_code != 0) refuse(folder, *answer);
  // Git warns and goes on; a tree that lacks files is worse than none.
  const std::size_t unreadable = answer->err.find("could not open directory");
  if (unreadable != std::string::npos) {
    throw std::runtime_error(fmt::format("git cannot read a folder in {}: {}", folder.native(),
                                         gits_complaint(answer->err.substr(unreadable))));
  }

  std::vector<std::string> names;
  std::string_view rest = answer->out;
  while (!rest.empty()) {
    std::string_view name = host::cut(rest, '\0');
    if (name.ends_with('/')) name.remove_suffix(1);  // an untracked repository
    require_inside(name);
    names.emplace_back(name);
  }
  if (!std::ranges::is_sorted(names)) std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);  // a conflict lists a file once for each side
  names.erase(repeated.begin(), repeated.end());
  return names;
}

namespace {

/// Whether the checkout's own configuration names programs through which git reads its files.
bool names_filters(const fs::path& folder) {
  const auto answer = run_git(git_in(
      folder, {"config", "--includes", "--show-scope", "--name-only", "--get-regexp", "^filter"}));
  if (!answer) return true;
  std::string_view rest = answer->out;
  while (!rest.empty()) {
    const std::string_view line = host::cut_line(rest);
    if (!line.starts_with("system\t") && !line.starts_with("global\t")) return true;
  }
  return false;
}

/// Has git see what differs from the commit, whatever the user's settings let it overlook: all of
/// it is sent.
std::vector<std::string> git_that_sees(const fs::path& folder, const fs::path& root,
                                       const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const char* setting :
       {"core.fileMode=true", "core.symlinks=true", "core.trustctime=true",
        "core.checkStat=default", "core.ignoreStat=false", "core.untrackedCache=false",
        "sparse.expectFilesOutsideOfPatterns=false", "diff.relative=false", "core.quotePath=false",
        "diff.context=3", "diff.interHunkContext=0"}) {
    words.emplace_back("-c");
    words.emplace_back(setting);
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  return git_in(folder, words, root);
}

/// Git's index of a checkout. Where files bear a mark by which git does not look at them, it is a
/// copy without those marks.
class SeenIndex {
 public:
  SeenIndex(const fs::path& folder, const fs::path& root);

  /// Git did not say all.
  bool is_unknown() const { return is_unknown_; }
  std::string variable() const {
    return copy_ ? "GIT_INDEX_FILE=" + (copy_->path() / "index").string()
                 : "GIT_NO_REPLACE_OBJECTS=1";
  }
  /// Repositories inside that are tracked as such, from the root.
  const std::vector<std::string>& inner() const { return inner_; }

 private:
  void copy();
  void unmark(const char* flag, const std::vector<std::string>& names);

  fs::path root_;
  std::optional<ssh::TemporaryFolder> copy_;  ///< the folder with the copy
  std::vector<std::string> inner_;
  bool is_unknown_ = false;
};

SeenIndex::SeenIndex(const fs::path& folder, const fs::path& root) : root_(root) {
  const auto answer = run_git(
      git_that_sees(folder, root, {"ls-files", "-v", "--stage", "--full-name", "-z", "--", "."}));
  is_unknown_ = !answer || answer->exit_code != 0;
  if (is_unknown_) return;
  std::vector<std::string> assumed;
  std::vector<std::string> skipped;
  // `H 100644 HASH 0<tab>NAME`
  for (std::string_view rest = answer->out; !rest.empty();) {
    const std::string_view line = host::cut(rest, '\0');
    const std::string name(line.substr(std::min(line.find('\t'), line.size() - 1) + 1));
    require_inside(name);
    if (line.substr(1).starts_with(" 160000 ")) inner_.push_back(name);
    if (line[0] >= 'a' && line[0] <= 'z') assumed.push_back(name);
    // A sparse checkout has these nowhere.
    std::error_code missing;
    if ((line[0] == 'S' || line[0] == 's') && fs::exists(fs::symlink_status(root / name, missing)))
      skipped.push_back(name);
  }
  if (assumed.empty() && skipped.empty()) return;
  copy();
  unmark("--no-assume-unchanged", assumed);
  unmark("--no-skip-worktree", skipped);
}

/// With its time, by which git knows the files that were written as late as the index was.
void SeenIndex::copy() {
  const auto answer = run_git(git_in(root_, {"rev-parse", "--git-path", "index"}));
  is_unknown_ = !answer || answer->exit_code != 0;
  if (is_unknown_) return;
  const fs::path copy = copy_.emplace().path() / "index";
  const fs::path index = root_ / answer->out.substr(0, answer->out.find('\n'));
  fs::copy_file(index, copy);
  fs::last_write_time(copy, fs::last_write_time(index));
}

void SeenIndex::unmark(const char* flag, const std::vector<std::string>& names) {
  constexpr std::size_t kAtOnce = 200;  // a name has up to 4096 bytes, and Linux takes 2 MiB
  for (std::size_t at = 0; at < names.size() && !is_unknown_; at += kAtOnce) {
    std::vector<std::string> words = {"update-index", flag, "--"};
    for (std::size_t i = at; i < std::min(at + kAtOnce, names.size()); ++i)
      words.push_back(names[i]);
    const auto answer = run_git(git_that_sees(root_, root_, words), variable());
    is_unknown_ = !answer || answer->exit_code != 0;
  }
}

/// The words of a line before its last field, the path, by the line's kind; 0: no line of a file.
std::size_t fields_before_path(std::string_view line) {
  if (line.starts_with("1 ")) return 8;
  if (line.starts_with("2 ")) return 9;
  if (line.starts_with("u ")) return 10;
  return 0;
}

/// `1 .M N... 100644 100644 100644 HASH HASH PATH`
std::string path_in(std::string_view line) {
  for (std::size_t field = fields_before_path(line); field > 0; --field) host::cut(line, ' ');
  return std::string(line);
}

}  // namespace

std::optional<GitState> git_state(const fs::path& folder, const std::string& left_out) {
  constexpr std::string_view kCommit = "# branch.oid ";
  constexpr std::string_view kBranch = "# branch.head ";
  const auto root = find_checkout(folder);
  if (!root || names_filters(folder)) return std::nullopt;
  const SeenIndex index(folder, *root);
  if (index.is_unknown()) return std::nullopt;
  // Without a look into repositories inside, whose configuration is their own.
  std::vector<std::string> words =
      git_that_sees(folder, *root,
                    {"status", "--porcelain=v2", "-z", "--branch", "--untracked-files=normal",
                     "--ignore-submodules=dirty", "--", "."});
  if (!left_out.empty()) words.push_back(":(exclude,literal)" + left_out);
  const auto answer = run_git(words, index.variable());
  if (!answer || answer->exit_code != 0) return std::nullopt;
  GitState state;
  std::string_view rest = answer->out;
  while (!rest.empty()) {
    const std::string_view line = host::cut(rest, '\0');
    if (line.starts_with(kCommit)) state.commit = line.substr(kCommit.size());
    if (line.starts_with(kBranch) && line.substr(kBranch.size()) != "(detached)")
      state.branch = line.substr(kBranch.size());
    if (line.starts_with('#')) continue;
    state.is_dirty = true;
    if (line.starts_with("? ")) state.untracked.emplace_back(line.substr(2));
    if (fields_before_path(line) > 0) state.changed.push_back(path_in(line));
    if (line.starts_with("2 "))
      state.changed.emplace_back(host::cut(rest, '\0'));  // its name before
  }
  for (const std::string& name : index.inner()) {
    std::error_code missing;
    if (!fs::exists(fs::symlink_status(*root / name / ".git", missing))) continue;
    const auto inner = git_state(*root / name, "");
    if (!inner || inner->is_dirty) state.inner.push_back(name);
  }
  if (!state.inner.empty()) state.is_dirty = true;
  for (const std::string& name : state.changed) require_inside(name);
  const bool is_whole = (state.commit.size() == 40 || state.commit.size() == 64) &&
                        state.commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_whole ? std::optional(state) : std::nullopt;  // else there is no commit yet
}

std::string to_string(const GitState& state) {
  return state.is_dirty ? state.commit + "-dirty" : state.commit;
}

std::string git_commit(const fs::path& folder, const std::string& left_out) {
  const auto state = git_state(folder, left_out);
  return state ? to_string(*state) : "";
}

namespace {

/// The bytes of these files in the commit, whose names are from the root; nothing if git does not
/// say.
std::optional<std::uintmax_t> committed_bytes(const fs::path& root,
                                              const std::vector<std::string>& names) {
  std::vector<std::string> words = git_in(root, {"ls-tree", "-l", "-z", "HEAD", "--"}, root);
  words.insert(words.end(), names.begin(), names.end());
  const auto answer = run_git(words);
  if (!answer || answer->exit_code != 0) return std::nullopt;
  std::uintmax_t bytes = 0;
  // `100644 blob HASH    SIZE<tab>NAME`
  for (std::string_view rest = answer->out; !rest.empty();) {
    const std::string_view line = host::cut(rest, '\0');
    const std::string_view head = line.substr(0, line.find('\t'));
    const auto size = host::parse_number<std::uintmax_t>(head.substr(head.rfind(' ') + 1));
    if (size) bytes += *size;  // a repository inside has `-`
  }
  return bytes;
}

}  // namespace

GitDiff git_diff(const fs::path& folder, const GitState& state,
                 const std::vector<std::string>& files, std::size_t most) {
  constexpr std::size_t kMostFiles = 2000;
  constexpr std::size_t kMostNames = 256U << 10U;    // bytes, of arguments
  constexpr std::uintmax_t kMostBytes = 16U << 20U;  // git reads them all
  const auto root = find_checkout(folder);
  if (!root) return {};
  GitDiff diff;
  std::vector<std::string> names;
  std::uintmax_t bytes = 0;
  std::size_t bytes_of_names = 0;
  for (const std::string& name : state.changed) {
    std::error_code missing;
    const fs::path file = *root / name;
    if (!fs::exists(fs::symlink_status(file, missing))) {
      diff.deleted.push_back(name);
      continue;
    }
    if (!std::ranges::binary_search(files, file.lexically_relative(folder).string())) continue;
    const auto size =
        fs::is_regular_file(fs::symlink_status(file, missing)) ? fs::file_size(file, missing) : 0;
    if (!missing) bytes += size;
    bytes_of_names += name.size() + 1;
    names.push_back(name);
  }
  if (!state.inner.empty())
    diff.left_out =
        fmt::format("edits in the repository {} are not part of it", state.inner.front());
  if (names.empty()) return diff;
  if (names.size() > kMostFiles || bytes_of_names > kMostNames) {
    diff.left_out = fmt::format("{} files were edited", names.size());
    return diff;
  }
  const auto before = committed_bytes(*root, names);
  if (!before || bytes + *before > kMostBytes) {
    diff.left_out = "the edited files have more than 16 MiB";
    return diff;
  }
  std::vector<std::string> words =
      git_that_sees(folder, *root,
                    {"diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
                     "--binary", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short",
                     "--ignore-submodules=dirty", "HEAD", "--"});
  for (const std::string& name : names) words.push_back(":(top,literal)" + name);
  const SeenIndex index(folder, *root);
  auto answer = run_git(words, index.variable());
  if (!answer || answer->exit_code != 0) {
    diff.left_out = answer ? "git: " + gits_complaint(answer->err) : "git is not installed";
  } else if (answer->out.size() > most) {
    diff.left_out = fmt::format("the edits have {} bytes, more than {}", answer->out.size(), most);
  } else {
    diff.text = std::move(answer->out);
  }
  return diff;
}

}  // namespace dtool::tree_sync
