// SPDX-License-Identifier: MIT
#include "ssh/host/tree/inside.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <string_view>

#include "killfiles/channel/sha256.h"

namespace dtool::host {
namespace {

constexpr int kFolder = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_part(std::string_view part) {
  return !part.empty() && part != "." && part != "..";
}

bool is_above(std::string_view path, std::string_view folder) {
  return folder.starts_with(path) && (folder.size() == path.size() || folder[path.size()] == '/');
}

/// A path to what is open.
std::string folder_path(int folder) {
  return "/proc/self/fd/" + std::to_string(folder);
}

std::vector<std::string> names_in(int folder) {
  return list_folder(folder_path(folder));
}

void remove_all(int folder, const std::string& name) {
  if (::unlinkat(folder, name.c_str(), 0) == 0) return;
  {
    const Descriptor inner(::openat(folder, name.c_str(), O_PATH | kFolder));
    if (!inner.is_open() || is_mount(inner.get())) return;
    ::fchmodat(inner.get(), ".", S_IRWXU, 0);  // else nothing in it might be deleted
    for (const std::string& each : names_in(inner.get())) remove_all(inner.get(), each);
  }
  ::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

Inside::Inside(const std::string& path)
    : root_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!root_.is_open()) throw std::runtime_error(with_reason("cannot enter " + path));
}

Inside::Spot Inside::find(const std::string& name, Way way) {
  const std::size_t slash = name.rfind('/');
  const std::size_t last = slash == name.npos ? 0 : slash + 1;
  if (!is_part(std::string_view(name).substr(last)) || name.find('\0') != name.npos) return {};
  const std::string_view folder = std::string_view(name).substr(0, last == 0 ? 0 : slash);
  while (!open_.empty() && !is_above(open_.back().path, folder)) open_.pop_back();
  std::size_t at = open_.empty() ? 0 : open_.back().path.size() + 1;
  while (last != 0 && at <= folder.size()) {
    const std::size_t end = std::min(folder.find('/', at), folder.size());
    const std::string part(folder.substr(at, end - at));
    if (!is_part(part)) return {};
    const int parent = open_.empty() ? root_.get() : open_.back().folder.get();
    Descriptor next(::openat(parent, part.c_str(), O_PATH | kFolder));
    if (!next.is_open() && way == Way::made && errno == ENOENT) {
      let_write(open_.empty() ? "" : open_.back().path, parent);
      ::mkdirat(parent, part.c_str(), S_IRWXU);
      next = Descriptor(::openat(parent, part.c_str(), O_PATH | kFolder));
    }
    if (!next.is_open()) return {};
    open_.push_back({std::string(folder.substr(0, end)), std::move(next)});
    at = end + 1;
  }
  return {open_.empty() ? root_.get() : open_.back().folder.get(), name.c_str() + last};
}

std::optional<struct stat> Inside::look(const std::string& name) {
  const Spot spot = find(name);
  struct stat status;
  if (spot.folder == -1 || ::fstatat(spot.folder, spot.name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  return status;
}

std::optional<struct stat> Inside::look_at_file(const std::string& name) {
  auto status = look(name);
  if (status && S_ISDIR(status->st_mode)) status.reset();
  return status;
}

std::string Inside::target_of(const std::string& link) {
  const Spot spot = find(link);
  std::string target(4096, '\0');
  const ssize_t size = ::readlinkat(spot.folder, spot.name, target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return target;
}

Descriptor Inside::open_file(const std::string& name) {
  const Spot spot = find(name);
  return Descriptor(
      ::openat(spot.folder, spot.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

std::string Inside::sum_of(const std::string& name) {
  const Descriptor file = open_file(name);
  if (!file.is_open()) return "";
  Sha256 sha;
  while (const auto bytes = read_some(file.get())) sha.add(*bytes);
  return to_hex(sha.finish());
}

void Inside::drop(const std::string& name) {
  const Spot spot = find(name);
  ::unlinkat(spot.folder, spot.name, 0);
}

/// What is opened is what is changed: another user of the folder may put a link in its place.
void Inside::set_facts(const std::string& name, mode_t mode, const timespec& time) {
  const Spot spot = find(name);
  const Descriptor opened(::openat(spot.folder, spot.name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const std::string path = folder_path(opened.get());
  const timespec times[] = {{0, UTIME_OMIT}, time};
  if (!opened.is_open() || ::chmod(path.c_str(), mode) != 0 ||
      ::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    throw std::runtime_error(with_reason(name));
}

/// Where a folder's mode forbids its owner to make and delete files in it, that is allowed until
/// take_leave_back().
void Inside::let_write(const std::string& name, int folder) {
  struct stat status;
  if (name.empty() || ::fstat(folder, &status) != 0 || (status.st_mode & S_IWUSR) != 0) return;
  const mode_t mode = status.st_mode & 07777U;
  if (::fchmodat(folder, ".", mode | S_IWUSR, 0) == 0) modes_.emplace_back(name, mode);
}

void Inside::take_leave_back() {
  for (const auto& [name, mode] : modes_) set_mode(name, mode);
  modes_.clear();
}

void Inside::take(Inside& from, const std::string& old_name, const std::string& name) {
  if (!take_if_near(from, old_name, name)) throw std::runtime_error(with_reason(name));
}

bool Inside::take_if_near(Inside& from, const std::string& old_name, const std::string& name) {
  const Spot old = from.find(old_name);
  const Spot spot = find(name, Way::made);
  if (spot.folder != -1 && !open_.empty()) let_write(open_.back().path, spot.folder);
  const bool is_taken = old.folder != -1 && spot.folder != -1 &&
                        ::renameat(old.folder, old.name, spot.folder, spot.name) == 0;
  if (!is_taken && (old.folder == -1 || spot.folder == -1 || errno != EXDEV))
    throw std::runtime_error(with_reason(name));
  return is_taken;
}

std::size_t Inside::remove(const std::vector<std::string>& names) {
  std::size_t removed = 0;
  std::set<std::string> folders;
  for (const std::string& name : names) {
    if (!look_at_file(name)) continue;
    const Spot spot = find(name);
    if (!open_.empty()) let_write(open_.back().path, spot.folder);
    if (::unlinkat(spot.folder, spot.name, 0) != 0)
      throw std::runtime_error(with_reason("cannot delete what is no longer in the tree: " + name));
    ++removed;
    for (std::size_t end = name.rfind('/'); end != name.npos; end = name.rfind('/', end - 1))
      if (!folders.insert(name.substr(0, end)).second || end == 0) break;
  }
  for (auto each = folders.rbegin(); each != folders.rend(); ++each) {
    const Spot spot = find(*each);
    if (spot.folder != -1) ::unlinkat(spot.folder, spot.name, AT_REMOVEDIR);
  }
  forget();
  take_leave_back();
  return removed;
}

/// One by one each takes a disk's time for a seek; but all that is to be written may be another
/// program's gigabytes.
void Inside::flush(const std::vector<std::string>& files) {
  constexpr std::size_t kMostOneByOne = 100;
  if (files.size() > kMostOneByOne) return flush_disk_of(folder_path(root_.get()));
  for (const std::string& name : files) {
    const auto file = look(name);
    if (file && !S_ISREG(file->st_mode)) continue;
    constexpr int kToRead = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    const Descriptor opened =
        file ? open_file(name) : Descriptor(::open(folder_path(nearest()).c_str(), kToRead));
    if (!opened.is_open()) return flush_disk_of(folder_path(root_.get()));  // not readable
    flush_to_disk(opened.get(), name);
  }
}

void Inside::set_mode(const std::string& folder, mode_t mode) {
  const Spot spot = find(folder);
  const Descriptor found(::openat(spot.folder, spot.name, O_PATH | kFolder));
  if (found.is_open()) ::fchmodat(found.get(), ".", mode, 0);
}

std::vector<std::string> Inside::list() const {
  return names_in(root_.get());
}

std::vector<std::string> Inside::list(const std::string& folder) {
  const Spot spot = find(folder);
  const Descriptor found(::openat(spot.folder, spot.name, O_PATH | kFolder));
  return found.is_open() ? names_in(found.get()) : std::vector<std::string>();
}

void Inside::remove_folder(const std::string& name) {
  forget();
  const Spot spot = find(name);
  if (spot.folder != -1) remove_all(spot.folder, spot.name);
}

}  // namespace dtool::host
