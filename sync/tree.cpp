// SPDX-License-Identifier: MIT
#include "sync/tree.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "sync/git_files.h"
#include "sync/open_folder.h"
#include "sync/pull.h"

namespace dtool::tree_sync {

namespace {

namespace fs = std::filesystem;

/// Names below are relative to the root; an empty one is the root itself.
class Reader {
 public:
  Reader(const fs::path& root, const std::vector<std::string>& excludes)
      : excludes_(excludes), root_(root) {
    tree_.root = root;
  }

  Tree read(const std::vector<std::string>& includes);

 private:
  bool is_checkout(const std::string& folder) const;
  std::vector<std::string> names_in(const std::string& folder) const;
  void add_folder(const std::string& name);
  void add_checkout(const std::string& name);
  void add_walked(const std::string& name);
  void add_included(const std::string& name);
  void add(std::string name);
  void keep(std::string name, const struct stat& status);
  void sort();
  bool is_readable(const std::string& name, const struct stat& status) const;

  Excludes excludes_;
  OpenFolder root_;
  Tree tree_;
  bool takes_fetched_ = false;
};

std::string join(const std::string& folder, std::string name) {
  return folder.empty() ? std::move(name) : folder + "/" + name;
}

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
  throw std::runtime_error(
      fmt::format("cannot read {} {}: {}", what, path.native(), std::strerror(error)));
}

Tree Reader::read(const std::vector<std::string>& includes) {
  if (find_checkout(tree_.root)) {
    add_checkout("");
  } else {
    add_walked("");
  }
  takes_fetched_ = true;
  for (const std::string& name : includes) add_included(name);
  // As they mostly are; a repository inside bears its name among others as a file does.
  if (!includes.empty() || !std::ranges::is_sorted(tree_.files)) sort();
  tree_.unused_excludes = excludes_.unused();
  return std::move(tree_);
}

void Reader::sort() {
  std::vector<std::pair<std::string, Look>> found;
  for (std::size_t i = 0; i < tree_.files.size(); ++i)
    found.emplace_back(std::move(tree_.files[i]), tree_.looks[i]);
  std::ranges::sort(found, {}, &std::pair<std::string, Look>::first);
  // A file that is included may have been there before.
  const auto twice = std::ranges::unique(found, {}, &std::pair<std::string, Look>::first);
  for (auto each = twice.begin(); each != twice.end(); ++each) {
    if (S_ISREG(each->second.mode)) tree_.bytes -= each->second.size;
  }
  found.erase(twice.begin(), twice.end());
  tree_.files.clear();
  tree_.looks.clear();
  for (auto& [name, look] : found) {
    tree_.files.push_back(std::move(name));
    tree_.looks.push_back(look);
  }
}

void Reader::keep(std::string name, const struct stat& status) {
  tree_.files.push_back(std::move(name));
  tree_.looks.push_back(look_of(status));
}

/// A repository's own; whatever else bears that name is not.
bool Reader::is_checkout(const std::string& folder) const {
  return root_.look_at(folder + "/.git").has_value();
}

std::vector<std::string> Reader::names_in(const std::string& folder) const {
  auto names = root_.names_in(folder);
  if (!names) fail("the folder", tree_.root / folder, errno);
  std::erase_if(*names, [](const std::string& name) { return name == ".git" || name == ".git/"; });
  return *std::move(names);
}

void Reader::add_folder(const std::string& name) {
  if (excludes_.match_folder(name)) return;
  if (!takes_fetched_ && fetched_run(tree_.root / name)) return;
  if (is_checkout(name)) {
    add_checkout(name);
  } else {
    add_walked(name);
  }
}

void Reader::add_checkout(const std::string& name) {
  for (std::string& file : git_files(tree_.root / name)) add(join(name, std::move(file)));
}

void Reader::add_walked(const std::string& name) {
  std::vector<std::string> names = names_in(name);
  if (names.empty() && !name.empty()) tree_.empty_folders.push_back(name);
  for (std::string& entry : names) {
    if (entry.ends_with('/')) entry.pop_back();
    add(join(name, std::move(entry)));
  }
}

void Reader::add_included(const std::string& name) {
  if (!root_.look_at(name)) fail("the included file", tree_.root / name, errno);
  add(name);
}

/// Leftovers of an interrupted push to this folder, and rsync's unfinished files.
bool is_of_a_push(const std::string& name) {
  const std::string_view last = std::string_view(name).substr(name.rfind('/') + 1);
  return last.starts_with(".~dtool~") || last == ".~tmp~";
}

void Reader::add(std::string name) {
  if (is_of_a_push(name)) return;
  const auto status = root_.look_at(name);
  if (!status) {
    // Tracked, and gone from the disk; or git's index names `a/b`, and `a` has become a link.
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return;
    fail("the file", tree_.root / name, errno);
  }
  if (S_ISDIR(status->st_mode)) {
    add_folder(name);
  } else if (excludes_.match_file(name)) {
    return;
  } else if (S_ISREG(status->st_mode)) {
    if (!is_readable(name, *status)) fail("the file", tree_.root / name, errno);
    tree_.bytes += static_cast<std::uint64_t>(status->st_size);
    keep(std::move(name), *status);
  } else if (S_ISLNK(status->st_mode)) {
    keep(std::move(name), *status);
  } else {
    tree_.skipped.push_back(std::move(name));
  }
}

/// An owner's own files, which nearly all are, tell by their mode.
bool Reader::is_readable(const std::string& name, const struct stat& status) const {
  const bool is_clear = status.st_uid == ::geteuid() && (status.st_mode & S_IRUSR) != 0;
  return is_clear || root_.may_read(name);
}

fs::path real_folder(const fs::path& root) {
  if (!root.is_absolute()) {
    throw std::runtime_error(
        fmt::format("the code tree {} is not an absolute path", root.native()));
  }
  std::error_code error;
  const fs::path real = fs::canonical(root, error);
  if (error == std::errc::no_such_file_or_directory) {
    throw std::runtime_error(fmt::format("the code tree {} is not there", root.native()));
  }
  if (error) fail("the code tree", root, error.value());
  if (!fs::is_directory(real)) {
    throw std::runtime_error(fmt::format("the code tree {} is not a folder", root.native()));
  }
  if (::access(real.c_str(), R_OK | X_OK) != 0) fail("the code tree", root, errno);
  return real;
}

}  // namespace

Look look_of(const struct stat& status) {
  const auto nanoseconds = [](long count) { return static_cast<std::uint32_t>(count); };
  return {static_cast<std::uint64_t>(status.st_size),
          status.st_mtim.tv_sec,
          nanoseconds(status.st_mtim.tv_nsec),
          status.st_mode,
          status.st_dev,
          status.st_ino,
          status.st_ctim.tv_sec,
          nanoseconds(status.st_ctim.tv_nsec)};
}

/// A new name of the file, which changes its ctime, is no change of what it has.
bool is_same(const Look& one, const Look& other) {
  return one.device == other.device && one.inode == other.inode && one.size == other.size &&
         one.seconds == other.seconds && one.nanoseconds == other.nanoseconds;
}

bool is_as_seen(int file, const Look& look) {
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return is_same(look_of(status), look);
}

Tree read_tree(const fs::path& root, const std::vector<std::string>& excludes,
               const std::vector<std::string>& includes) {
  return Reader(real_folder(root), excludes).read(includes);
}

Tree tree_of(const fs::path& root, std::vector<std::string> files) {
  Tree tree;
  tree.root = fs::canonical(root);
  tree.files = std::move(files);
  std::ranges::sort(tree.files);
  const OpenFolder folder(tree.root);
  for (const std::string& file : tree.files) {
    const auto status = folder.look_at(file);
    if (!status) throw std::system_error(errno, std::generic_category(), tree.root / file);
    tree.looks.push_back(look_of(*status));
    if (S_ISREG(status->st_mode)) tree.bytes += static_cast<std::uint64_t>(status->st_size);
  }
  return tree;
}

void require_files(const Tree& tree) {
  if (!tree.files.empty()) return;
  const bool is_gits = find_checkout(tree.root).has_value();
  throw std::runtime_error(
      fmt::format("the code tree {} has no file to send\nhint: {}", tree.root.native(),
                  is_gits ? "git ignores what is in it; `git check-ignore -v` tells by which rule"
                          : "is this the folder you meant?"));
}

namespace {

/// Whether a path matches a pattern that may have `**` between slashes.
bool matches(std::string_view pattern, std::string_view path) {
  const std::size_t end = pattern.find('/');
  const std::string part(pattern.substr(0, end));
  const std::string_view rest = end == pattern.npos ? "" : pattern.substr(end + 1);
  if (part == "**") {
    if (rest.empty()) return !path.empty();
    for (std::size_t begin = 0;; ++begin) {
      if (matches(rest, path.substr(begin))) return true;
      begin = path.find('/', begin);
      if (begin == path.npos) return false;
    }
  }
  const std::size_t slash = path.find('/');
  const std::string component(path.substr(0, slash));
  if (::fnmatch(part.c_str(), component.c_str(), FNM_PATHNAME) != 0) return false;
  if (end == pattern.npos || slash == path.npos) return end == pattern.npos && slash == path.npos;
  return matches(rest, path.substr(slash + 1));
}

}  // namespace

Excludes::Excludes(const std::vector<std::string>& patterns) {
  for (const std::string& given : patterns) {
    Pattern pattern;
    std::string_view text = given;
    while (text.starts_with("./")) text.remove_prefix(2);
    pattern.is_folder = text.ends_with('/');
    while (text.ends_with('/')) text.remove_suffix(1);
    pattern.is_rooted = text.find('/') != text.npos;
    while (text.starts_with('/')) text.remove_prefix(1);
    if (text.empty()) {
      throw std::invalid_argument(fmt::format("the pattern '{}' excludes nothing", given));
    }
    pattern.given = given;
    pattern.text = text;
    patterns_.push_back(pattern);
  }
}

bool Excludes::match_file(std::string_view name) const {
  return match(name, Kind::file);
}

bool Excludes::match_folder(std::string_view name) const {
  return match(name, Kind::folder);
}

bool Excludes::match(std::string_view name, Kind kind) const {
  if (patterns_.empty()) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const bool is_folder = end < name.size() || kind == Kind::folder;
    bool is_match = false;
    for (const Pattern& pattern : patterns_) {
      if (pattern.is_folder && !is_folder) continue;
      const std::size_t first = pattern.is_rooted ? 0 : begin;
      if (!matches(pattern.text, name.substr(first, end - first))) continue;
      is_match = pattern.is_used = true;
    }
    if (is_match) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string> Excludes::unused() const {
  std::vector<std::string> unused;
  for (const Pattern& each : patterns_) {
    if (!each.is_used) unused.push_back(each.given);
  }
  return unused;
}

}  // namespace dtool::tree_sync
