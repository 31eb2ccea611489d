// SPDX-License-Identifier: MIT
// Reading and writing by system calls: the standard library knows neither fsync nor modes.
#include "killfiles/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "killfiles/channel/wire.h"

namespace dtool::killfiles {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargest = std::size_t{256} << 20U;  // metrics of long runs are read, too

[[noreturn]] void fail(const fs::path& file, const char* what) {
  throw std::system_error(errno, std::generic_category(), file.string() + ": " + what);
}

void sync_folder(const fs::path& folder) {
  const host::Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open() || fsync(opened.get()) != 0) fail(folder, "cannot be written to disk");
}

void make_folder(const fs::path& folder) {
  if (folder.empty() || fs::is_directory(folder)) return;
  const fs::path parent = folder.parent_path();
  make_folder(parent);
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) fail(folder, "cannot be made");
  sync_folder(parent.empty() ? "." : parent);
}

}  // namespace

std::string read_whole(const fs::path& file) {
  const host::Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.is_open()) fail(file, "cannot be read");
  auto text = host::read_to_end(opened.get(), kLargest + 1);
  if (text && text->size() > kLargest) {
    errno = EFBIG;
    text.reset();
  }
  if (!text) fail(file, "cannot be read");
  return *std::move(text);
}

void write_whole(const fs::path& file, std::string_view text) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  make_folder(folder);
  std::string temporary = (folder / ("." + file.filename().string() + ".XXXXXX")).string();
  const host::Descriptor opened(mkostemp(temporary.data(), O_CLOEXEC));  // 0600
  if (!opened.is_open()) fail(file, "cannot be written");
  try {
    if (!host::write_to_end(opened.get(), text)) fail(file, "cannot be written");
    if (fsync(opened.get()) != 0) fail(file, "cannot be written to disk");
    if (rename(temporary.c_str(), file.c_str()) != 0) fail(file, "cannot be written");
  } catch (const std::system_error&) {
    unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder);
}

}  // namespace dtool::killfiles
