// SPDX-License-Identifier: MIT
// Reads a file by system calls: an ifstream opens a folder without an error and drops errno.
#include "ssh/machine/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace dtool::ssh {

std::string read_file(const std::filesystem::path& file) {
  const auto fail = [&file](int error) {
    throw std::system_error(error, std::generic_category(), file.string() + ": cannot be read");
  };
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(errno);
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      const int error = count == 0 ? 0 : errno;
      close(descriptor);
      if (error != 0) fail(error);
      return text;
    }
  }
}

std::string boot_id() {
  try {
    const std::string text = read_file("/proc/sys/kernel/random/boot_id");
    return text.substr(0, text.find('\n'));
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace dtool::ssh
