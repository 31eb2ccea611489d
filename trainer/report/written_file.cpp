// SPDX-License-Identifier: MIT
#include "trainer/report/written_file.h"

#include <fcntl.h>
#include <unistd.h>

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

void write_and_flush(const std::filesystem::path& file,
                     const std::function<void(const Sink&)>& write) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(file);
  try {
    write([&](std::string_view bytes) { write_all(descriptor, bytes, file); });
  } catch (...) {
    close(descriptor);
    throw;
  }
  const bool flushed = fsync(descriptor) == 0;
  if (close(descriptor) != 0 || !flushed) fail(file);
}

}  // namespace

void write_whole(const std::filesystem::path& file, const std::string& content) {
  write_whole(file, [&](const Sink& sink) { sink(content); });
}

void write_whole(const std::filesystem::path& file, const std::function<void(const Sink&)>& write) {
  std::filesystem::path temporary = file;
  temporary += kTemporary;
  try {
    write_and_flush(temporary, write);
    std::filesystem::rename(temporary, file);
  } catch (...) {
    // On a full disk its room is wanted, for the line that says so among others.
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  flush_folder(file.parent_path().empty() ? "." : file.parent_path());
}

}  // namespace dtool::trainer
