// SPDX-License-Identifier: MIT
#include "trainer/report/written_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace dtool::trainer {

namespace {

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw std::system_error(errno, std::generic_category(), "cannot write " + file.string());
}

void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder);
  fsync(descriptor);  // some network file systems refuse it for folders, and then need none
  close(descriptor);
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const auto part = write(descriptor, bytes.data(), bytes.size());
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) fail(file);
    bytes.remove_prefix(static_cast<std::size_t>(part));
  }
}

/// A device or a pipe, such as /dev/stdout, that a file must not take the place of.
bool is_no_file(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) &&
         !std::filesystem::is_regular_file(file, ignored) &&
         !std::filesystem::is_directory(file, ignored);
}

enum class Written { file, no_file };

/// A file is made or made empty, and flushed, which a pipe or a device cannot be.
void write_to(const std::filesystem::path& file, Written what,
              const std::function<void(const Sink&)>& write) {
  const int flags = what == Written::file ? O_CREAT | O_TRUNC : 0;
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644);
  if (descriptor < 0) fail(file);
  try {
    write([&](std::string_view bytes) { write_all(descriptor, bytes, file); });
  } catch (...) {
    close(descriptor);
    throw;
  }
  const bool flushed = what == Written::no_file || fsync(descriptor) == 0;
  if (close(descriptor) != 0 || !flushed) fail(file);
}

}  // namespace

void write_whole(const std::filesystem::path& file, const std::string& content) {
  write_whole(file, [&](const Sink& sink) { sink(content); });
}

void write_whole(const std::filesystem::path& file, const std::function<void(const Sink&)>& write) {
  if (is_no_file(file)) return write_to(file, Written::no_file, write);
  std::filesystem::path temporary = file;
  temporary += kTemporary;
  try {
    write_to(temporary, Written::file, write);
    std::filesystem::rename(temporary, file);
  } catch (...) {
    // On a full disk its room is wanted, for the line that says so among others.
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  flush_folder(file.parent_path().empty() ? "." : file.parent_path());
}

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
