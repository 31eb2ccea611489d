// SPDX-License-Identifier: MIT
// zlib's gz functions pass a file that is not gzip on unchanged.
#include "trainer/data/packed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

PackedFile::PackedFile(std::filesystem::path file)
    : file_(std::move(file)),
      descriptor_(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)),
      stream_(descriptor_ < 0 ? nullptr : gzdopen(descriptor_, "rb")) {
  if (stream_ == nullptr || ::fstat(descriptor_, &at_first_) != 0) {
    const int error = errno;
    if (stream_ != nullptr) {
      gzclose_r(stream_);
    } else if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
    throw UsageError(fmt::format("cannot read {}: {}", file_.string(), std::strerror(error)));
  }
  gzbuffer(stream_, 1 << 18);
}

PackedFile::~PackedFile() {
  gzclose_r(stream_);
}

std::size_t PackedFile::read(void* into, std::size_t size) {
  constexpr std::size_t kMostAtOnce = 1 << 30;
  auto* const bytes = static_cast<char*>(into);
  std::size_t done = 0;
  while (done < size) {
    const auto part = static_cast<unsigned>(std::min(size - done, kMostAtOnce));
    const int got = gzread(stream_, bytes + done, part);
    done += static_cast<std::size_t>(std::max(got, 0));
    if (got == static_cast<int>(part)) continue;
    int error = Z_OK;
    const char* reason = gzerror(stream_, &error);
    if (error == Z_BUF_ERROR) {
      throw UsageError(fmt::format("{}: truncated gzip data", file_.string()));
    }
    if (error == Z_ERRNO) {
      throw UsageError(fmt::format("cannot read {}: {}", file_.string(), std::strerror(errno)));
    }
    if (error != Z_OK && error != Z_STREAM_END) {
      throw UsageError(fmt::format("{}: damaged gzip data: {}", file_.string(), reason));
    }
    if (got <= 0) break;
  }
  return done;
}

void PackedFile::rewind() {
  if (gzrewind(stream_) == 0) return;
  throw UsageError(fmt::format("cannot read {} again: {}", file_.string(), std::strerror(errno)));
}

/// A file that was renamed has another st_ctim, and the same content.
bool PackedFile::is_unchanged() const {
  struct stat now {};
  return ::fstat(descriptor_, &now) == 0 && now.st_size == at_first_.st_size &&
         now.st_mtim.tv_sec == at_first_.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == at_first_.st_mtim.tv_nsec;
}

std::string read_packed(const std::filesystem::path& file) {
  PackedFile stream(file);
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  std::string content;
  std::size_t done = 0;
  std::size_t part = unknown ? 1 << 20 : static_cast<std::size_t>(size) + 1;
  for (;;) {
    content.resize(done + part);
    const std::size_t got = stream.read(content.data() + done, part);
    done += got;
    if (got < part) break;
    part = std::max(part, std::size_t{1} << 20);
  }
  content.resize(done);
  return content;
}

}  // namespace dtool::trainer
