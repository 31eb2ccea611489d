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

/// Opens a file that must be there, or that the flags have made. Throws std::system_error.
host::Descriptor must_open(const std::filesystem::path& file, int flags) {
  host::Descriptor descriptor(open(file.c_str(), flags | O_CLOEXEC, 0644));
  if (!descriptor.is_open()) fail(file);
  return descriptor;
}

void flush_folder_of(const std::filesystem::path& file) {
  const auto folder = file.parent_path();
  // Some network file systems refuse it for folders, and then need none.
  fsync(must_open(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY).get());
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
  host::Descriptor descriptor =
      must_open(file, O_WRONLY | (what == Written::file ? O_CREAT | O_TRUNC : 0));
  write([&](std::string_view bytes) {
    if (!write_all(descriptor.get(), bytes)) fail(file);
  });
  const bool flushed = what == Written::no_file || fsync(descriptor.get()) == 0;
  if (close(descriptor.release()) != 0 || !flushed) fail(file);
}

}  // namespace

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto part = write(descriptor, bytes.data(), bytes.size());
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(part));
  }
  return true;
}

void name_when_whole(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (fsync(must_open(from, O_RDONLY).get()) != 0 && errno != EINVAL) fail(from);
  std::filesystem::rename(from, to);
  flush_folder_of(to);
}

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
  flush_folder_of(file);
}

AppendFile::AppendFile(const std::filesystem::path& file, HalfLine half_line)
    : name_(file), descriptor_(must_open(file, O_RDWR | O_CREAT | O_APPEND)) {
  if (half_line == HalfLine::cut) cut_half_line();
}

void AppendFile::cut_half_line() {
  off_t end = lseek(descriptor_.get(), 0, SEEK_END);
  const off_t size = end;
  std::array<char, 4096> block{};
  while (end > 0) {
    const off_t begin = end > static_cast<off_t>(block.size()) ? end - block.size() : 0;
    const auto length =
        pread(descriptor_.get(), block.data(), static_cast<std::size_t>(end - begin), begin);
    if (length != end - begin) return;  // a pipe or a device: its content must not be cut
    const auto line_break =
        std::string_view(block.data(), static_cast<std::size_t>(length)).rfind('\n');
    end = begin;
    if (line_break == std::string_view::npos) continue;
    end += static_cast<off_t>(line_break) + 1;
    break;
  }
  if (end < size && ftruncate(descriptor_.get(), end) != 0) fail(name_);
}

void AppendFile::append(std::string_view piece) {
  const off_t before = lseek(descriptor_.get(), 0, SEEK_END);
  if (write_all(descriptor_.get(), piece)) return;
  const int error = errno;
  // Others may have appended since, where nothing was written here.
  const bool has_part = lseek(descriptor_.get(), 0, SEEK_CUR) > before;
  [[maybe_unused]] const int taken_back = has_part ? ftruncate(descriptor_.get(), before) : 0;
  errno = error;
  fail(name_);
}

}  // namespace dtool::trainer
