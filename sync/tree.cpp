#include "sync/tree.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>

#include "sync/exclude.h"
#include "sync/git_files.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

/// Names below are relative to the root; an empty one is the root itself.
class Reader {
 public:
  Reader(const fs::path& root, const std::vector<std::string>& excludes) : excludes_(excludes) {
    tree_.root = root;
  }

  Tree read();

 private:
  void add_folder(const std::string& name);
  void add_checkout(const std::string& name);
  void add_walked(const std::string& name);
  void add(const std::string& name);
  bool is_behind_link(const std::string& name);

  Excludes excludes_;
  Tree tree_;
  std::map<std::string, bool> behind_link_;  ///< by folder
};

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

/// A repository's own; whatever else bears that name is not.
bool is_checkout(const fs::path& folder) {
  struct stat status {};
  return ::lstat((folder / ".git").c_str(), &status) == 0;
}

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
  throw std::runtime_error(
      fmt::format("cannot read {} {}: {}", what, path.native(), std::strerror(error)));
}

Tree Reader::read() {
  if (find_checkout(tree_.root)) {
    add_checkout("");
  } else {
    add_walked("");
  }
  std::ranges::sort(tree_.files);
  return std::move(tree_);
}

void Reader::add_folder(const std::string& name) {
  if (excludes_.match_folder(name)) return;
  if (is_checkout(tree_.root / name)) {
    add_checkout(name);
  } else {
    add_walked(name);
  }
}

void Reader::add_checkout(const std::string& name) {
  for (const std::string& file : git_files(tree_.root / name)) add(join(name, file));
}

void Reader::add_walked(const std::string& name) {
  const fs::path folder = tree_.root / name;
  std::error_code error;
  fs::directory_iterator each(folder, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    const std::string entry = each->path().filename().native();
    if (entry != ".git") add(join(name, entry));
  }
  if (error) fail("the folder", folder, error.value());
}

/// What a push to this folder left here when it was interrupted, and rsync's unfinished files.
bool is_of_a_push(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return last.starts_with(".~dtool~") || last == ".~tmp~";
}

void Reader::add(const std::string& name) {
  if (is_of_a_push(name)) return;
  const fs::path path = tree_.root / name;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;  // tracked, and gone from the disk
    fail("the file", path, errno);
  }
  if (is_behind_link(name)) return;
  if (S_ISDIR(status.st_mode)) {
    add_folder(name);
  } else if (excludes_.match_file(name)) {
    return;
  } else if (S_ISREG(status.st_mode)) {
    if (::access(path.c_str(), R_OK) != 0) fail("the file", path, errno);
    tree_.files.push_back(name);
    tree_.bytes += static_cast<std::uint64_t>(status.st_size);
  } else if (S_ISLNK(status.st_mode)) {
    tree_.files.push_back(name);
  } else {
    tree_.skipped.push_back(name);
  }
}

/// Git's index may still name `a/b` where `a` has become a link.
bool Reader::is_behind_link(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos) return false;
  const std::string folder = name.substr(0, slash);
  const auto known = behind_link_.find(folder);
  if (known != behind_link_.end()) return known->second;
  struct stat status {};
  const bool is_link =
      ::lstat((tree_.root / folder).c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  return behind_link_[folder] = is_link || is_behind_link(folder);
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

Tree read_tree(const fs::path& root, const std::vector<std::string>& excludes) {
  Tree tree = Reader(real_folder(root), excludes).read();
  if (tree.files.empty()) {
    const bool is_gits = find_checkout(tree.root).has_value();
    throw std::runtime_error(
        fmt::format("the code tree {} has no file to send\nhint: {}", root.native(),
                    is_gits ? "git ignores what is in it; `git check-ignore -v` tells by which rule"
                            : "is this the folder you meant?"));
  }
  return tree;
}

}  // namespace dtool::tree_sync
