// SPDX-License-Identifier: MIT
#include "sync/copy/copy_list.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ssh/host/frames.h"
#include "sync/exclude.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

/// Where parts lie on hosts, also on this machine where it was one of them.
constexpr std::string_view kOwn = ".~dtool~copy-";

[[noreturn]] void fail(const fs::path& path, int error) {
  throw std::runtime_error(fmt::format("cannot read {}: {}", path.native(), std::strerror(error)));
}

class Lister {
 public:
  explicit Lister(const std::vector<std::string>& excludes) : excludes_(excludes) {}

  void add_source(const std::string& source);
  CopyList finish();

 private:
  void add(const std::string& name, const fs::path& path, const struct stat& status);
  void add_inside(const std::string& prefix, const fs::path& folder);
  void keep(std::string name, const fs::path& path, const struct stat& status,
            std::string target = {});

  Excludes excludes_;
  CopyList list_;
};

void Lister::keep(std::string name, const fs::path& path, const struct stat& status,
                  std::string target) {
  host::CopyEntry entry;
  entry.name = std::move(name);
  entry.mode = status.st_mode & 07777U;
  entry.seconds = status.st_mtim.tv_sec;
  entry.nanoseconds = status.st_mtim.tv_nsec;
  entry.target = std::move(target);
  if (S_ISREG(status.st_mode)) entry.size = static_cast<std::uint64_t>(status.st_size);
  list_.bytes += entry.size;
  if (!S_ISDIR(status.st_mode)) ++list_.files;
  list_.entries.push_back(std::move(entry));
  list_.paths.push_back(path);
}

void Lister::add_inside(const std::string& prefix, const fs::path& folder) {
  std::error_code fault;
  fs::directory_iterator files(folder, fault);
  for (; !fault && files != fs::directory_iterator(); files.increment(fault)) {
    struct stat status {};
    if (::lstat(files->path().c_str(), &status) != 0) fail(files->path(), errno);
    add(prefix + files->path().filename().native(), files->path(), status);
  }
  if (fault) fail(folder, fault.value());
}

void Lister::add(const std::string& name, const fs::path& path, const struct stat& status) {
  if (path.filename().native().starts_with(kOwn)) return;
  if (S_ISDIR(status.st_mode)) {
    if (excludes_.match_folder(name)) return;
    keep(name + "/", path, status);
    add_inside(name + "/", path);
  } else if (excludes_.match_file(name)) {
    return;
  } else if (S_ISREG(status.st_mode)) {
    if (::access(path.c_str(), R_OK) != 0) fail(path, errno);
    keep(name, path, status);
  } else if (S_ISLNK(status.st_mode)) {
    std::error_code fault;
    std::string target = fs::read_symlink(path, fault).native();
    if (fault) fail(path, fault.value());
    keep(name, path, status, std::move(target));
  } else {
    list_.skipped.push_back(path.native());
  }
}

void Lister::add_source(const std::string& source) {
  const bool is_content = source.ends_with('/');
  struct stat status {};
  if (::stat(source.c_str(), &status) != 0) {
    if (errno == ENOENT) throw std::runtime_error(fmt::format("there is no {}", source));
    if (errno == ENOTDIR && is_content)
      throw std::runtime_error(fmt::format("{} is no folder", source));
    fail(source, errno);
  }
  if (is_content) return add_inside("", source);
  // `.` and `..` get the names of the folders that they are.
  const fs::path named = fs::path(source).filename();
  const bool is_dots = named == "." || named == "..";
  const fs::path path = is_dots ? fs::canonical(source) : fs::path(source);
  if (!path.has_filename())
    throw std::runtime_error(
        fmt::format("{} has no name to copy it under\nhint: {} stands for "
                    "what is in it",
                    source, source.ends_with('/') ? source : source + "/"));
  add(path.filename().native(), path, status);
}

/// A name without the slash of a folder, by which two of one name are found.
std::string_view bare(const host::CopyEntry& entry) {
  const std::string_view name = entry.name;
  return name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
}

CopyList Lister::finish() {
  std::vector<std::size_t> order(list_.entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort_by = [&](auto name) {
    std::ranges::sort(order, {}, [&](std::size_t at) { return name(list_.entries[at]); });
  };
  sort_by(bare);
  const auto twice = std::ranges::adjacent_find(
      order, {}, [&](std::size_t at) { return bare(list_.entries[at]); });
  if (twice != order.end())
    throw std::runtime_error(
        fmt::format("{} and {} would both be copied to {}", list_.paths[*twice].native(),
                    list_.paths[*(twice + 1)].native(), bare(list_.entries[*twice])));
  sort_by([](const host::CopyEntry& entry) -> std::string_view { return entry.name; });
  CopyList sorted;
  for (const std::size_t at : order) {
    sorted.entries.push_back(std::move(list_.entries[at]));
    sorted.paths.push_back(std::move(list_.paths[at]));
  }
  list_.entries = std::move(sorted.entries);
  list_.paths = std::move(sorted.paths);
  return std::move(list_);
}

}  // namespace

CopyList list_sources(const std::vector<std::string>& sources,
                      const std::vector<std::string>& excludes) {
  Lister lister(excludes);
  for (const std::string& source : sources) lister.add_source(source);
  return lister.finish();
}

std::shared_ptr<const ssh::SharedBytes> pack_list(const CopyList& list, Compression compression) {
  ssh::SharedBytes bytes;
  bytes.make = [&list, compression](const ssh::SharedBytes::Write& write) {
    PackageWriter package(write, compression, "", list.entries.size() * 128);
    for (const host::CopyEntry& entry : list.entries) package.add(host::to_frame(entry));
    package.finish();
  };
  return std::make_shared<const ssh::SharedBytes>(std::move(bytes));
}

}  // namespace dtool::tree_sync
