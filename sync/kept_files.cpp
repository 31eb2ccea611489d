// SPDX-License-Identifier: MIT
#include "sync/kept_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/machine/owned_fd.h"

namespace dtool::tree_sync {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostLists = 8;

}  // namespace

std::vector<fs::path> newest_first(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  fs::directory_iterator each(folder, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::error_code gone;
    found.emplace_back(fs::last_write_time(*each, gone), each->path());
  }
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

void keep_file(const fs::path& folder, const std::string& name, std::string_view begin,
               std::string_view rest) {
  ::mkdir(folder.parent_path().c_str(), 0700);
  ::mkdir(folder.c_str(), 0700);
  fs::permissions(folder, fs::perms::owner_all);  // throws if the folder could not be made
  const fs::path unfinished = folder / fmt::format("new.{}", ::getpid());
  try {
    const ssh::OwnedFd file(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    host::write_all(file.get(), begin);
    host::write_all(file.get(), rest);
    host::flush_to_disk(file.get(), unfinished);
  } catch (const std::runtime_error&) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw fs::filesystem_error("cannot write", unfinished,
                               std::make_error_code(std::errc::io_error));
  }
  fs::rename(unfinished, folder / name);
  const auto kept = newest_first(folder);
  for (std::size_t i = kMostLists; i < kept.size(); ++i) {
    std::error_code gone;
    fs::remove(kept[i], gone);
  }
}

}  // namespace dtool::tree_sync
