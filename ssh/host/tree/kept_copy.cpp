// SPDX-License-Identifier: MIT
#include "ssh/host/tree/kept_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "ssh/host/files.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {

namespace {

std::string made(const std::string& path) {
  if (!make_folder(path)) throw Refused(with_reason("cannot make the folder " + path));
  return path;
}

std::string time_of_change(const struct stat& file) {
  return std::to_string(file.st_ctim.tv_sec) + "." + std::to_string(file.st_ctim.tv_nsec);
}

}  // namespace

KeptCopy::KeptCopy(TreeFolder& folder)
    : folder_(folder), path_(made(folder.path_of(".copy"))), inside_(path_) {}

/// Whether the copy has the folder's file of that place. `known`: what was noted of it. If anything
/// of it was changed since, and be it the number of its names, its bytes are compared.
bool KeptCopy::has(std::size_t place, const struct stat& file, std::string_view known) {
  const std::string& stamp = stamps_[place];
  const std::string identity = identity_of_copy(file) + " ";
  if ((mode_in(stamp) & kPermissions) != (file.st_mode & 07777U) || !known.starts_with(identity) ||
      !known.ends_with(" " + stamp))
    return false;
  if (known == identity + time_of_change(file) + " " + stamp) return true;
  const std::string& name = names_[place];
  const Descriptor original = folder_.inside().open_file(name);
  const Descriptor copy = inside_.open_file(name);
  struct stat read {};
  return original.is_open() && copy.is_open() && have_same_bytes(original, copy) &&
         ::fstat(original.get(), &read) == 0 && stamp_of(read, name) == stamp;
}

void KeptCopy::copy(std::size_t place) {
  const std::string& name = names_[place];
  if (inside_.look_at_file(name)) inside_.remove({name});
  const Copied copied = copy_file(folder_.inside(), inside_, name);
  if (stamp_of(copied.source, name) != stamps_[place])
    throw std::runtime_error(name + " was changed meanwhile");
  files_[place] = {identity_of_copy(copied.copy), time_of_change(copied.copy)};
}

void KeptCopy::clear() {
  for (const std::string& each : inside_.list()) inside_.remove_folder(each);
}

void KeptCopy::write_list() {
  FileNames list;
  list.reserve(2 * names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    list.push_back(names_[i]);
    const File& file = files_[i];
    list.push_back(file.identity.empty() ? ""
                                         : file.identity + " " + file.changed + " " + stamps_[i]);
  }
  write_file(folder_.path_of(".copied"), join_names(list));
}

void KeptCopy::update(const FileNames& names, const FileNames& stamps) {
  const std::string list = folder_.path_of(".copied");
  const FileNames before = split_names(read_file(list, kLargestList).value_or(""));
  names_ = names;
  stamps_ = stamps;
  files_.assign(names.size(), {});
  // What an interruption left is of unknown origin.
  if (before.empty()) clear();
  FileNames stale;
  std::vector<std::string_view> known(names.size());
  for (std::size_t each = 0, i = 0; each + 1 < before.size(); each += 2) {
    while (i < names.size() && names[i] < before[each]) ++i;
    const bool is_there = i < names.size() && names[i] == before[each];
    if (is_there) known[i] = before[each + 1];
    if (!is_there) stale.push_back(before[each]);
  }
  bool is_changed = false;
  const auto begin_change = [&] {
    if (!is_changed && !write_in_place(list, ""))
      throw std::runtime_error("cannot write " + list + ": is the disk full?");
    is_changed = true;
  };
  try {
    if (!stale.empty()) begin_change();
    inside_.remove(stale);
    FileNames made;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (stamps[i].starts_with('l')) continue;
      const auto file = inside_.look_at_file(names[i]);
      if (file && has(i, *file, known[i])) {
        files_[i] = {identity_of_copy(*file), time_of_change(*file)};
        continue;
      }
      begin_change();
      copy(i);
      made.push_back(names[i]);
    }
    inside_.flush(made);
    if (is_changed) write_list();
    ::utimensat(AT_FDCWD, list.c_str(), nullptr, 0);
  } catch (const std::exception&) {
    ::unlink(list.c_str());
    clear();
    throw;
  }
}

bool KeptCopy::link(std::size_t place, const Inside::Spot& to) {
  const std::string& name = names_[place];
  const Inside::Spot from = inside_.find(name);
  const auto look = [&from] {
    struct stat file {};
    const bool is_there = ::fstatat(from.folder, from.name, &file, AT_SYMLINK_NOFOLLOW) == 0;
    return is_there ? File{identity_of_copy(file), time_of_change(file)} : File{};
  };
  File& known = files_[place];
  const File now = look();
  if (now.identity != known.identity || now.changed != known.changed)
    throw std::runtime_error("a run changed the copy of " + name + " meanwhile");
  if (::linkat(from.folder, from.name, to.folder, to.name, 0) != 0) return false;
  known = look();
  return true;
}

void remove_old_copies(std::int64_t unused) {
  constexpr std::string_view kEnding = ".copied";
  const std::string trees = expand_home("~/.dtool/trees");
  for (const std::string& name : list_folder(trees)) {
    const std::string list = trees + "/" + name;
    if (!name.ends_with(kEnding) || age_of(list).value_or(0) < unused) continue;
    const std::string key = name.substr(0, name.size() - kEnding.size());
    const Descriptor lock = lock_file(trees + "/" + key + ".lock", 0);
    if (!lock.is_open() || age_of(list).value_or(0) < unused) continue;
    ::unlink(list.c_str());
    Inside(trees).remove_folder(key + ".copy");
  }
}

namespace {

/// The kernel copies, and lets both files share their bytes where the file system can do that.
/// Holes stay holes.
bool is_copied_by_kernel(int from, int to, off_t size) {
  off_t at = 0;
  while (at < size) {
    const off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // the rest is a hole
    const off_t hole = data < 0 ? size : ::lseek(from, data, SEEK_HOLE);
    off_t source = std::max(at, data);
    const off_t end = std::min(hole < 0 ? size : hole, size);
    off_t copy = source;
    while (source < end) {
      const auto left = static_cast<std::size_t>(end - source);
      // None: it cannot, or the disk is full, which writing tells.
      if (::copy_file_range(from, &source, to, &copy, left, 0) <= 0) return false;
    }
    at = end;
  }
  return ::ftruncate(to, size) == 0;
}

void copy_bytes(int from, int to, off_t size) {
  if (is_copied_by_kernel(from, to, size)) return;
  if (::lseek(from, 0, SEEK_SET) != 0 || ::lseek(to, 0, SEEK_SET) != 0)
    throw std::runtime_error(with_reason("cannot read it again"));
  while (const auto bytes = read_some(from)) write_with_holes(to, *bytes);
  end_hole(to);
}

}  // namespace

Copied copy_file(Inside& from, Inside& to, const std::string& name, const std::string& as) {
  const Descriptor source = from.open_file(name);
  struct stat before;
  if (!source.is_open() || ::fstat(source.get(), &before) != 0)
    throw std::runtime_error(with_reason(name));
  if (!S_ISREG(before.st_mode)) throw std::runtime_error(name + " is not a file any more");
  const Inside::Spot spot = to.find(as.empty() ? name : as, Inside::Way::made);
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor copy(::openat(spot.folder, spot.name, kNew, S_IRUSR | S_IWUSR));
  if (!copy.is_open()) throw std::runtime_error(with_reason(name));
  try {
    copy_bytes(source.get(), copy.get(), before.st_size);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(name + ": " + error.what());
  }
  const timespec times[] = {before.st_mtim, before.st_mtim};
  Copied copied;
  if (::fchmod(copy.get(), before.st_mode & kPermissions) != 0 ||
      ::futimens(copy.get(), times) != 0 || ::fstat(source.get(), &copied.source) != 0 ||
      ::fstat(copy.get(), &copied.copy) != 0)
    throw std::runtime_error(with_reason(name));
  // Some file servers say only here that the disk is full.
  if (::close(copy.release()) != 0) throw std::runtime_error(with_reason(name));
  return copied;
}

bool have_same_bytes(const Descriptor& one, const Descriptor& other) {
  for (;;) {
    const auto bytes = read_some(one.get());
    if (bytes != read_some(other.get())) return false;
    if (!bytes) return true;
  }
}

std::string identity_of_copy(const struct stat& file) {
  return std::to_string(file.st_ino) + " " + std::to_string(file.st_size) + " " +
         std::to_string(file.st_mtim.tv_sec) + "." + std::to_string(file.st_mtim.tv_nsec);
}

}  // namespace dtool::host
