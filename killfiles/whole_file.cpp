// SPDX-License-Identifier: MIT
// Reading and writing by system calls: the standard library knows neither fsync nor modes.
#include "killfiles/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace dtool::killfiles {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargest = std::size_t{256} << 20U;  // metrics of long runs are read, too

[[noreturn]] void fail(const fs::path& file, const char* what) {
  throw std::system_error(errno, std::generic_category(), file.string() + ": " + what);
}

// An open file; closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

void sync_folder(const fs::path& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || fsync(opened.get()) != 0) fail(folder, "cannot be written to disk");
}

void make_folder(const fs::path& folder) {
  if (folder.empty() || fs::is_directory(folder)) return;
  const fs::path parent = folder.parent_path();
  make_folder(parent);
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) fail(folder, "cannot be made");
  sync_folder(parent.empty() ? "." : parent);
}

void write_all(int descriptor, std::string_view text, const fs::path& file) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail(file, "cannot be written");
    }
  }
}

}  // namespace

std::string read_whole(const fs::path& file) {
  const Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.get() < 0) fail(file, "cannot be read");
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(opened.get(), buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(file, "cannot be read");
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kLargest) {
      errno = EFBIG;
      fail(file, "cannot be read");
    }
  }
}

void write_whole(const fs::path& file, std::string_view text) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  make_folder(folder);
  std::string temporary = (folder / ("." + file.filename().string() + ".XXXXXX")).string();
  const Descriptor opened(mkostemp(temporary.data(), O_CLOEXEC));  // 0600
  if (opened.get() < 0) fail(file, "cannot be written");
  try {
    write_all(opened.get(), text, file);
    if (fsync(opened.get()) != 0) fail(file, "cannot be written to disk");
    if (rename(temporary.c_str(), file.c_str()) != 0) fail(file, "cannot be written");
  } catch (const std::system_error&) {
    unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder);
}

}  // namespace dtool::killfiles
