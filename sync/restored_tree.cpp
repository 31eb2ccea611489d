// SPDX-License-Identifier: MIT
#include "sync/restored_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "sync/contents.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

/// Whether the name leads to a place below the folder, and is written in one way only.
bool is_inside(std::string_view name) {
  if (name.ends_with('/')) name.remove_suffix(1);
  for (;;) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == name.npos) return true;
    name.remove_prefix(slash + 1);
  }
}

void require(bool is_done, const fs::path& path) {
  if (!is_done) throw fs::filesystem_error("cannot write", path, {errno, std::generic_category()});
}

}  // namespace

RestoredTree::RestoredTree(Listing listing, const fs::path& folder)
    : listing_(std::move(listing)), root_(folder / "tree"), words_(folder / "contents") {
  for (const Entry& each : listing_.entries) {
    if (!is_inside(each.name))
      throw std::runtime_error(fmt::format("its list of files has the name '{}'", each.name));
    if (each.is_folder() || !described(each).target.empty()) continue;
    if (each.content.empty())
      throw std::runtime_error(
          fmt::format("its list of files does not tell the content of {}: an older dtool, which "
                      "did not read what stayed on this machine, started it",
                      each.name));
    missing_.emplace_back(each.name);
  }
  fs::create_directories(root_);
}

void RestoredTree::copy_from(const fs::path& from) {
  auto wanted = missing_.begin();
  for (const Entry& each : listing_.entries) {
    if (wanted == missing_.end()) break;
    if (each.name != *wanted) continue;
    ++wanted;
    struct stat there {};
    const fs::path file = from / each.name;
    if (::lstat(file.c_str(), &there) != 0 || !S_ISREG(there.st_mode) ||
        static_cast<std::uint64_t>(there.st_size) != each.size())
      continue;
    const fs::path place = root_ / each.name;
    fs::create_directories(place.parent_path());
    std::error_code fault;
    fs::copy_file(file, place, fs::copy_options::overwrite_existing, fault);
    // One that may not be read, or is gone since, is for another folder to give.
    if (fault == std::errc::permission_denied || fault == std::errc::no_such_file_or_directory)
      continue;
    if (fault) throw fs::filesystem_error("cannot copy", file, place, fault);
  }
}

void RestoredTree::prove() {
  // In the place of a folder a host may have sent a link.
  for (const Entry& each : listing_.entries) {
    if (!each.is_folder()) continue;
    const fs::path folder = root_ / each.name.substr(0, each.name.size() - 1);
    const fs::file_type type = fs::symlink_status(folder).type();
    if (type != fs::file_type::directory && type != fs::file_type::not_found) fs::remove(folder);
  }
  std::vector<std::string> there;
  for (const std::string& name : missing_) {
    const fs::file_type type = fs::symlink_status(root_ / name).type();
    if (type == fs::file_type::regular) {
      there.push_back(name);
    } else if (type != fs::file_type::not_found) {
      fs::remove_all(root_ / name);
    }
  }
  const std::vector<std::string> words =
      read_contents(tree_of(root_, there), words_, std::time(nullptr));
  std::map<std::string_view, std::string_view> contents;  // the key is the name
  for (const Entry& each : listing_.entries) contents.emplace(each.name, each.content);
  std::vector<std::string> proven;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (words[i] == contents.at(there[i])) {
      proven.push_back(there[i]);
    } else {
      fs::remove(root_ / there[i]);
    }
  }
  std::vector<std::string> left;
  std::ranges::set_difference(missing_, proven, std::back_inserter(left));
  missing_ = std::move(left);
}

Tree RestoredTree::finish() {
  std::vector<std::string> files;
  for (const Entry& each : listing_.entries) {
    const host::CopyEntry entry = described(each);
    const fs::path path = root_ / each.name;
    if (each.is_folder()) {
      fs::create_directories(path);
      // What is in it is to be deleted again.
      require(::chmod(path.c_str(), entry.mode | S_IRWXU) == 0, path);
      continue;
    }
    files.emplace_back(each.name);
    if (!entry.target.empty()) {
      fs::remove(path);
      fs::create_symlink(entry.target, path);
    } else {
      require(::chmod(path.c_str(), entry.mode) == 0, path);
    }
    const timespec time{entry.seconds, static_cast<long>(entry.nanoseconds)};
    const timespec times[] = {time, time};
    require(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0, path);
  }
  return tree_of(root_, std::move(files));
}

}  // namespace dtool::tree_sync
