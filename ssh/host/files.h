// SPDX-License-Identifier: MIT
// Files and descriptors of the host, as dtool-host reads and writes them.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "killfiles/channel/wire.h"

namespace dtool::host {

/// While it lives, new files are accessible to their owner alone.
class OwnersAlone {
 public:
  OwnersAlone() : before_(::umask(077)) {}
  ~OwnersAlone() { ::umask(before_); }
  OwnersAlone(const OwnersAlone&) = delete;
  OwnersAlone& operator=(const OwnersAlone&) = delete;

 private:
  mode_t before_;
};

/// The text of a small file, or of one in /proc, at most `most` bytes; nothing if it cannot be
/// read.
std::optional<std::string> read_file(const std::string& path, std::size_t most = 1U << 20U);

/// The first line of a file, without its end; empty if there is none.
std::string read_line(const std::string& path);

/// Waits until a file's bytes are on the disk, so that they are whole under the name that it gets
/// next even if the power fails. File systems that know no such thing need none. Throws
/// std::runtime_error that names `path`.
void flush_to_disk(int descriptor, const std::string& path);
/// The same for all that was written to the file system of this folder.
void flush_disk_of(const std::string& folder);

/// Writes a whole file; its name appears only when it is complete, on the disk. Throws
/// std::runtime_error with a sentence.
void write_file(const std::string& path, std::string_view content);

/// The same over the bytes of `path.new`, which was made before: on a full disk there is room for
/// no others.
void write_over_reserved(const std::string& path, std::string_view content);

/// Overwrites a file in place, for a folder that is full or belongs to somebody else. Returns
/// whether that worked.
bool write_in_place(const std::string& path, std::string_view content);

/// Appends to a file, and makes it if it is missing. Returns whether that worked.
bool append_to(const std::string& path, std::string_view content);

bool exists(const std::string& path);
bool is_folder(const std::string& path);

/// Seconds since the file was written; nothing if it does not exist.
std::optional<std::int64_t> age_of(const std::string& path);
/// Whether the file was written after the other, or exists and the other does not.
bool is_newer(const std::string& path, const std::string& other);

/// Makes one folder. Returns whether it exists now.
bool make_folder(const std::string& path);
/// The same, with all folders above it.
bool make_folders(const std::string& path);

/// The names in a folder except `.` and `..`, in no order; none if it cannot be read.
std::vector<std::string> list_folder(const std::string& path);
/// The same of an open folder; nothing, with errno, if it cannot be read to its end.
std::optional<std::vector<std::string>> read_folder(const Descriptor& folder);
/// When what the path leads to was changed, in seconds since 1970, by the file system's clock;
/// nothing if it is not there.
std::optional<time_t> change_of(const std::string& path);
/// Bytes that are free on a disk for every user: what it keeps back for root is not counted, also
/// where root asks, so that all who ask about room are told the same.
std::uint64_t free_bytes(const struct statvfs& disk);
/// How many more files the disk can hold; nothing if it has no such limit.
std::optional<std::uint64_t> free_inodes(const struct statvfs& disk);
/// Why nothing can be written into a folder, as far as can be seen: `is the disk full?`, or that
/// its inodes are used up.
std::string guess_lack_of_room(const std::string& folder);
/// Whether a file system is mounted on this open folder (O_PATH will do). Kernels before 5.8 tell
/// only if its device is another one than that of the folder above.
bool is_mount(int folder);

/// `~/…` with the home folder ($HOME) in place of `~`.
std::string expand_home(const std::string& path);

/// The folder part of a path: `a/b` of `a/b/c`.
std::string folder_of(const std::string& path);

/// The next bytes; nothing at the end. Throws std::runtime_error.
std::optional<std::string> read_some(int descriptor);

/// Throws std::runtime_error if they cannot all be written.
void write_all(int descriptor, std::string_view bytes);

/// The same for a file; blocks of zeros behind its end become holes, which take no room on the
/// disk. The file may be too short until end_hole().
void write_with_holes(int file, std::string_view bytes);
/// Ends the file where it was written last, if a hole comes last. It is never made shorter.
void end_hole(int file);

/// Takes an exclusive lock (flock) on a file, which is made if it is missing. The lock is held
/// until the descriptor is closed. A closed descriptor means that the lock was not free within
/// `wait_ms`.
Descriptor lock_file(const std::string& path, int wait_ms);

// The order in which a small record comes onto a disk: after a power loss it is whole or absent,
// never half.

/// What is done with one file at a time; each call throws if it fails. The simulation
/// (tests/simulation) has a disk that forgets what was not flushed.
struct Disk {
  virtual ~Disk() = default;

  /// Opens an empty file.
  virtual void make(const std::string& path) = 0;
  /// Opens a file as it is.
  virtual void open(const std::string& path) = 0;
  virtual void write(const std::string& path, std::string_view content) = 0;
  /// Waits until what was written is on the disk.
  virtual void flush(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
};

/// Writes a whole file. Where the disk is full, an older one stays as it is.
void write_whole(Disk& disk, const std::string& path, std::string_view content);

/// The same over the bytes of a file that was made before, `path.new`: a full disk has room for
/// them, and for no others.
void write_reserved(Disk& disk, const std::string& path, std::string_view content);

}  // namespace dtool::host
