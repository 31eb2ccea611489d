// SPDX-License-Identifier: MIT
#include "ssh/host/strangers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <set>
#include <utility>

#include "ssh/host/files.h"

namespace dtool::host {
namespace {

/// As the kernel's own limit.
constexpr int kMostLinks = 40;

/// Goes a path step by step, as the kernel does.
class Walk {
 public:
  Walk(std::string path, Strangers which) : which_(which), rest_(std::move(path)) {}

  std::optional<Stranger> find();

 private:
  bool is_open_to_others() const;
  bool counts(const struct stat& status);

  Strangers which_;
  std::string rest_;      ///< the rest of the way
  std::string at_ = "/";  ///< the place that the walk has come to
  std::set<uid_t> invited_;
};

/// Whether somebody who was not let in may put something into the folder.
bool Walk::is_open_to_others() const {
  struct stat folder {};
  if (::lstat(at_.c_str(), &folder) != 0) return true;
  return (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
         (is_strangers(folder.st_uid) && !invited_.contains(folder.st_uid));
}

bool Walk::counts(const struct stat& status) {
  if (!is_strangers(status.st_uid)) return false;
  if (which_ == Strangers::all) return true;
  if (invited_.contains(status.st_uid)) return false;
  if (is_open_to_others()) return true;
  invited_.insert(status.st_uid);
  return false;
}

std::optional<Stranger> Walk::find() {
  for (int links = 0; !rest_.empty();) {
    const std::size_t slash = std::min(rest_.find('/'), rest_.size());
    const std::string part = rest_.substr(0, slash);
    rest_.erase(0, slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at_ = folder_of(at_);
      continue;
    }
    const std::string path = (at_ == "/" ? "" : at_) + "/" + part;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
    if (counts(status)) return Stranger{path, status.st_uid};
    if (!S_ISLNK(status.st_mode)) {
      at_ = path;
      continue;
    }
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size <= 0 || ++links > kMostLinks) return std::nullopt;
    rest_.insert(0, std::string(target.data(), static_cast<std::size_t>(size)) + "/");
    if (rest_.starts_with('/')) at_ = "/";
  }
  return std::nullopt;
}

}  // namespace

std::optional<Stranger> find_stranger(const std::string& path, Strangers which) {
  return Walk(expand_home(path), which).find();
}

/// In a user namespace root may be seen as another number: the folder in which all is belongs to
/// it.
bool is_strangers(uid_t owner) {
  static const uid_t kRoot = [] {
    struct stat all {};
    return ::stat("/", &all) == 0 ? all.st_uid : 0;
  }();
  return owner != ::geteuid() && owner != 0 && owner != kRoot;
}

std::string name_of_user(uid_t user) {
  const std::string number = std::to_string(user);
  const std::string all = "\n" + read_file("/etc/passwd").value_or("");
  for (std::size_t at = all.find('\n'); at != all.npos; at = all.find('\n', at + 1)) {
    const std::size_t name = all.find(':', at);
    const std::size_t password = name == all.npos ? name : all.find(':', name + 1);
    if (password != all.npos && all.compare(password + 1, number.size() + 1, number + ":") == 0)
      return all.substr(at + 1, name - at - 1);
  }
  return number;
}

std::string to_string(const Stranger& stranger) {
  return stranger.path + " belongs to " + name_of_user(stranger.user);
}

}  // namespace dtool::host
