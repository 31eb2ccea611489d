// SPDX-License-Identifier: MIT
#include "trainer/report/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace dtool::trainer {
namespace {

[[noreturn]] void fail(const std::string& name) {
  throw std::system_error(errno, std::generic_category(), "cannot write " + name);
}

}  // namespace

AppendFile::AppendFile(const std::filesystem::path& file, HalfLine half_line)
    : name_(file.string()),
      descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail(name_);
  if (half_line == HalfLine::cut) cut_half_line();
}

AppendFile::~AppendFile() {
  close(descriptor_);
}

void AppendFile::cut_half_line() {
  off_t end = lseek(descriptor_, 0, SEEK_END);
  const off_t size = end;
  std::array<char, 4096> block{};
  while (end > 0) {
    const off_t begin = end > static_cast<off_t>(block.size()) ? end - block.size() : 0;
    const auto length =
        pread(descriptor_, block.data(), static_cast<std::size_t>(end - begin), begin);
    if (length != end - begin) return;  // a pipe or a device: its content must not be cut
    const auto line_break =
        std::string_view(block.data(), static_cast<std::size_t>(length)).rfind('\n');
    end = begin;
    if (line_break == std::string_view::npos) continue;
    end += static_cast<off_t>(line_break) + 1;
    break;
  }
  if (end < size && ftruncate(descriptor_, end) != 0) fail(name_);
}

void AppendFile::append(std::string_view piece) {
  const off_t before = lseek(descriptor_, 0, SEEK_END);
  std::size_t done = 0;
  while (done < piece.size()) {
    const auto part = write(descriptor_, piece.data() + done, piece.size() - done);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) break;
    done += static_cast<std::size_t>(part);
  }
  if (done == piece.size()) return;
  const int error = errno;
  if (done > 0) [[maybe_unused]]
    const int taken_back = ftruncate(descriptor_, before);
  errno = error;
  fail(name_);
}

}  // namespace dtool::trainer
