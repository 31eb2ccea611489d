// SPDX-License-Identifier: MIT
#include "ssh/host/answers/environment_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {
namespace {

constexpr std::string_view kHead = "dtool's list of an environment's files, 1";

/// A file's name, and what is known of it.
using Listed = std::pair<std::string, std::string>;

/// Size, time, mode and target. The time is that of the last change of any kind, which no program
/// can set back. The inode is left out: some file servers number files anew.
std::string facts_of_listed(struct stat file, const std::string& target) {
  file.st_mtim = file.st_ctim;
  return facts_of(file, "", target);
}

class Lister {
 public:
  std::vector<Listed> list(const std::string& path) {
    const Descriptor folder(::open(path.c_str(), kFolder));
    if (!folder.is_open()) throw std::runtime_error(with_reason("cannot read " + path));
    look_into(folder, "");
    std::ranges::sort(files_);
    return std::move(files_);
  }

 private:
  static constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  void look_into(const Descriptor& folder, const std::string& prefix) {
    const auto names = read_folder(folder);
    if (!names) throw std::runtime_error(with_reason("cannot read " + prefix));
    for (const std::string& each : *names) {
      if (each != "__pycache__") look_at(folder, each, prefix + each);
    }
  }

  void look_at(const Descriptor& folder, const std::string& last, const std::string& name) {
    struct stat file;
    if (::fstatat(folder.get(), last.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0)
      throw std::runtime_error(with_reason("cannot look at " + name));
    if (S_ISDIR(file.st_mode)) {
      const Descriptor inner(::openat(folder.get(), last.c_str(), kFolder));
      if (!inner.is_open()) throw std::runtime_error(with_reason("cannot read " + name));
      return look_into(inner, name + "/");
    }
    std::array<char, PATH_MAX> target;
    const ssize_t size = S_ISLNK(file.st_mode) ? ::readlinkat(folder.get(), last.c_str(),
                                                              target.data(), target.size())
                                               : 0;
    if (size < 0) throw std::runtime_error(with_reason("cannot look at " + name));
    files_.emplace_back(
        name, facts_of_listed(file, std::string(target.data(), static_cast<std::size_t>(size))));
  }

  std::vector<Listed> files_;
};

std::vector<Listed> as_listed(FileNames words) {
  std::vector<Listed> files;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2)
    files.emplace_back(std::move(words[i]), std::move(words[i + 1]));
  return files;
}

/// Both are sorted.
std::string find_difference(const std::vector<Listed>& before, const std::vector<Listed>& now) {
  const auto [one, other] = std::ranges::mismatch(before, now);
  if (one == before.end() && other == now.end()) return {};
  if (other == now.end() || (one != before.end() && one->first < other->first))
    return one->first + " is gone";
  if (one == before.end() || other->first < one->first) return other->first + " was added";
  return one->first + " was changed";
}

}  // namespace

void list_environment(const std::string& folder, const std::string& list) {
  flush_disk_of(folder);
  FileNames words{std::string(kHead)};
  for (Listed& file : Lister().list(folder)) {
    words.push_back(std::move(file.first));
    words.push_back(std::move(file.second));
  }
  write_file(list, join_names(words));
}

std::string find_environment_change(const std::string& folder, const std::string& list) {
  FileNames words = split_names(read_file(list, kLargestList).value_or(""));
  if (words.empty() || words.front() != kHead) return "there is no list of its files";
  try {
    return find_difference(as_listed(std::move(words)), Lister().list(folder));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace dtool::host
