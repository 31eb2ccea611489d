// Files and descriptors of the host, as dtool-host reads and writes them.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// A descriptor that is closed by itself.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return number_; }
  bool is_open() const { return number_ != -1; }
  int release();

 private:
  int number_;
};

/// While it lives, what is made is for the user's eyes alone.
class OwnersAlone {
 public:
  OwnersAlone() : before_(::umask(077)) {}
  ~OwnersAlone() { ::umask(before_); }
  OwnersAlone(const OwnersAlone&) = delete;
  OwnersAlone& operator=(const OwnersAlone&) = delete;

 private:
  mode_t before_;
};

/// The text of a small file, or of one in /proc; nothing if it cannot be read. At most `most`
/// bytes.
std::optional<std::string> read_file(const std::string& path, std::size_t most = 1U << 20U);

/// The first line of a file, without its end; empty if there is none.
std::string read_line(const std::string& path);

/// Writes a file whole, under its name only when it is complete. Throws std::runtime_error with a
/// sentence.
void write_file(const std::string& path, std::string_view content);

/// Writes into a file of that name in place; nothing else can be done where a folder is full or not
/// ours. Whether that went well.
bool write_in_place(const std::string& path, std::string_view content);

/// Writes at a file's end, and makes the file where it is missing. Whether that went well.
bool append_to(const std::string& path, std::string_view content);

bool exists(const std::string& path);
bool is_folder(const std::string& path);

/// Makes one folder. Whether it is there now.
bool make_folder(const std::string& path);
/// The same with all folders above it.
bool make_folders(const std::string& path);

/// The names in a folder but `.` and `..`, in no order; none if it cannot be read.
std::vector<std::string> list_folder(const std::string& path);

/// `~/…` with the home folder ($HOME) in place of `~`.
std::string expand_home(const std::string& path);

/// The folder part of a path: `a/b` of `a/b/c`.
std::string folder_of(const std::string& path);

/// The next bytes; nothing at the end. Throws std::runtime_error.
std::optional<std::string> read_some(int descriptor);

/// Throws std::runtime_error if they cannot all be written.
void write_all(int descriptor, std::string_view bytes);

/// An exclusive lock (flock) on a file that is made where it is missing. It is held until the
/// descriptor is closed; closed: it could not be had in time. `wait_ms`: how long to try.
Descriptor lock_file(const std::string& path, int wait_ms);

/// `what: No such file or directory`, by errno.
std::string with_reason(const std::string& what);

}  // namespace dtool::host
