// SPDX-License-Identifier: MIT
#include "ssh/host/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <utility>

namespace dtool::host {

std::optional<std::string> read_file(const std::string& path, std::size_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return std::nullopt;
  return read_to_end(file.get(), most);
}

std::string read_line(const std::string& path) {
  const std::string text = read_file(path, 65536).value_or("");
  return text.substr(0, text.find('\n'));
}

namespace {

void require_flushed(int result, const std::string& path) {
  if (result == 0 || errno == EINVAL || errno == ENOSYS || errno == EROFS) return;
  throw std::runtime_error(with_reason("cannot write " + path + " to the disk"));
}

}  // namespace

void flush_to_disk(int descriptor, const std::string& path) {
  require_flushed(::fsync(descriptor), path);
}

void flush_disk_of(const std::string& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) throw std::runtime_error(with_reason("cannot read " + folder));
  require_flushed(::syncfs(opened.get()), folder);
}

namespace {

/// The disk of this host, for one record.
class HostDisk : public Disk {
 public:
  void make(const std::string& path) override { open_as(path, O_TRUNC); }
  void open(const std::string& path) override { open_as(path, 0); }
  void write(const std::string& /*path*/, std::string_view content) override {
    write_all(file_.get(), content);
  }
  void flush(const std::string& path) override {
    flush_to_disk(file_.get(), path);
    file_ = Descriptor();
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      throw std::runtime_error(with_reason("cannot write " + to));
  }

 private:
  void open_as(const std::string& path, int mode) {
    file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666));
    if (!file_.is_open()) throw std::runtime_error(with_reason("cannot write " + path));
  }

  Descriptor file_;
};

}  // namespace

void write_file(const std::string& path, std::string_view content) {
  HostDisk disk;
  write_whole(disk, path, content);
}

void write_over_reserved(const std::string& path, std::string_view content) {
  HostDisk disk;
  write_reserved(disk, path, content);
}

namespace {

bool write_to(const std::string& path, int mode, std::string_view content) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666));
  if (!file.is_open()) return false;
  try {
    write_all(file.get(), content);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

/// Adds the names in the folder except `.` and `..`; whether it was read to its end.
bool add_names(DIR* folder, std::vector<std::string>& names) {
  for (;;) {
    errno = 0;
    const dirent* each = ::readdir(folder);
    if (each == nullptr) return errno == 0;
    const std::string_view name = each->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

}  // namespace

bool write_in_place(const std::string& path, std::string_view content) {
  return write_to(path, O_TRUNC, content);
}

bool append_to(const std::string& path, std::string_view content) {
  return write_to(path, O_APPEND, content);
}

bool is_folder(const std::string& path) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::optional<std::int64_t> age_of(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return std::time(nullptr) - found.st_mtim.tv_sec;
}

bool is_newer(const std::string& path, const std::string& other) {
  struct stat one, two;
  if (::stat(path.c_str(), &one) != 0) return false;
  if (::stat(other.c_str(), &two) != 0) return true;
  return std::pair(one.st_mtim.tv_sec, one.st_mtim.tv_nsec) >
         std::pair(two.st_mtim.tv_sec, two.st_mtim.tv_nsec);
}

bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  const int why = errno == EEXIST ? ENOTDIR : errno;
  const bool is_there = is_folder(path);
  errno = why;
  return is_there;
}

bool make_folders(const std::string& path) {
  if (is_folder(path)) return true;
  if (path != folder_of(path) && !make_folders(folder_of(path))) return false;
  return make_folder(path);
}

bool exists(const std::string& path) {
  struct stat found;
  return ::lstat(path.c_str(), &found) == 0;
}

std::vector<std::string> list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(path.c_str()), ::closedir);
  std::vector<std::string> names;
  if (opened != nullptr) add_names(opened.get(), names);
  return names;
}

std::optional<std::vector<std::string>> read_folder(const Descriptor& folder) {
  const int copy = ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::fdopendir(copy), ::closedir);
  if (opened == nullptr) {
    if (copy != -1) ::close(copy);
    return std::nullopt;
  }
  std::vector<std::string> names;
  return add_names(opened.get(), names) ? std::optional(std::move(names)) : std::nullopt;
}

std::optional<time_t> change_of(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return found.st_mtim.tv_sec;
}

std::uint64_t free_bytes(const struct statvfs& disk) {
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

std::optional<std::uint64_t> free_inodes(const struct statvfs& disk) {
  return disk.f_files == 0 ? std::nullopt : std::optional<std::uint64_t>(disk.f_favail);
}

std::string guess_lack_of_room(const std::string& folder) {
  struct statvfs disk;
  const bool has_none = ::statvfs(folder.c_str(), &disk) == 0 && free_inodes(disk).value_or(1) == 0;
  return has_none ? "its disk has no inodes left (df -i); too many files are on it"
                  : "is the disk full?";
}

bool is_mount(int folder) {
  struct statx known {};
  if (::statx(folder, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 0, &known) == 0 &&
      (known.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
    return (known.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  struct stat itself;
  struct stat above;
  return ::fstat(folder, &itself) == 0 && ::fstatat(folder, "..", &above, 0) == 0 &&
         itself.st_dev != above.st_dev;
}

std::string expand_home(const std::string& path) {
  if (path != "~" && path.rfind("~/", 0) != 0) return path;
  const char* home = std::getenv("HOME");
  return (home != nullptr ? home : "") + path.substr(1);
}

std::string folder_of(const std::string& path) {
  const std::size_t end = path.rfind('/');
  if (end == path.npos) return ".";
  return end == 0 ? "/" : path.substr(0, end);
}

std::optional<std::string> read_some(int descriptor) {
  std::string piece(65536, '\0');
  for (;;) {
    const ssize_t size = ::read(descriptor, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw std::runtime_error(with_reason("cannot read"));
    if (size == 0) return std::nullopt;
    piece.resize(static_cast<std::size_t>(size));
    return piece;
  }
}

void write_all(int descriptor, std::string_view bytes) {
  if (!write_to_end(descriptor, bytes)) throw std::runtime_error(with_reason("cannot write"));
}

void write_with_holes(int file, std::string_view bytes) {
  constexpr std::size_t kBlock = 4096;
  const auto is_zero = [](std::string_view block) {
    return block[0] == '\0' && block.substr(1) == block.substr(0, block.size() - 1);
  };
  const off_t place = ::lseek(file, 0, SEEK_CUR);
  struct stat found;
  if (place < 0 || ::fstat(file, &found) != 0 || !S_ISREG(found.st_mode))
    return write_all(file, bytes);
  const std::size_t until_block = (kBlock - static_cast<std::size_t>(place) % kBlock) % kBlock;
  std::size_t written = 0;
  for (std::size_t at = until_block; at + kBlock <= bytes.size(); at += kBlock) {
    const bool is_behind_end = place + static_cast<off_t>(at) >= found.st_size;
    if (!is_behind_end || !is_zero(bytes.substr(at, kBlock))) continue;
    write_all(file, bytes.substr(written, at - written));
    if (::lseek(file, kBlock, SEEK_CUR) < 0) throw std::runtime_error(with_reason("cannot write"));
    written = at + kBlock;
  }
  write_all(file, bytes.substr(written));
}

void end_hole(int file) {
  const off_t place = ::lseek(file, 0, SEEK_CUR);
  struct stat found;
  if (place <= 0 || ::fstat(file, &found) != 0 || found.st_size >= place) return;
  // Another host may write at its end: to cut it would be wrong.
  if (::pwrite(file, "", 1, place - 1) != 1) throw std::runtime_error(with_reason("cannot write"));
}

Descriptor lock_file(const std::string& path, int wait_ms) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.is_open()) return file;
  for (int waited = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; waited += 20) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= wait_ms) return Descriptor();
    const timespec pause{0, 20'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return file;
}

void write_whole(Disk& disk, const std::string& path, std::string_view content) {
  const std::string temporary = path + ".new";
  disk.make(temporary);
  disk.write(temporary, content);
  disk.flush(temporary);
  disk.rename(temporary, path);
}

void write_reserved(Disk& disk, const std::string& path, std::string_view content) {
  const std::string reserved = path + ".new";
  disk.open(reserved);
  disk.write(reserved, content);
  disk.flush(reserved);
  disk.rename(reserved, path);
}

}  // namespace dtool::host
