// SPDX-License-Identifier: MIT
#include "ssh/host/tree/copy_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "ssh/host/files.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {
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
