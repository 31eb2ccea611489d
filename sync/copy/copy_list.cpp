// SPDX-License-Identifier: MIT
#include "sync/copy/copy_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ssh/wire/protocol.h"
#include "sync/tree.h"

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
  void add(const std::string& name, Origin origin, const struct stat& status);
  void add_inside(const std::string& prefix, const Origin& folder);
  void keep(std::string name, Origin origin, std::string target = {});

  Excludes excludes_;
  CopyList list_;
};

void Lister::keep(std::string name, Origin origin, std::string target) {
  const Look& look = origin.look;
  host::CopyEntry entry;
  entry.name = std::move(name);
  entry.mode = look.mode & host::kPermissions;
  entry.seconds = look.seconds;
  entry.nanoseconds = look.nanoseconds;
  entry.target = std::move(target);
  if (S_ISREG(look.mode)) entry.size = look.size;
  list_.bytes += entry.size;
  if (!S_ISDIR(look.mode)) ++list_.files;
  list_.entries.push_back(std::move(entry));
  list_.origins.push_back(std::move(origin));
}

void Lister::add_inside(const std::string& prefix, const Origin& folder) {
  const auto names = folder.folder->names_in(folder.name);
  if (!names) fail(folder.path(), errno);
  for (std::string each : *names) {
    if (each.ends_with('/')) each.pop_back();
    Origin origin{folder.folder, folder.name.empty() ? each : folder.name + "/" + each};
    const auto status = folder.folder->look_at(origin.name);
    if (!status) fail(origin.path(), errno);
    add(prefix + each, std::move(origin), *status);
  }
}

void Lister::add(const std::string& name, Origin origin, const struct stat& status) {
  if (name.substr(name.rfind('/') + 1).starts_with(kOwn)) return;
  origin.look = look_of(status);
  if (S_ISDIR(status.st_mode)) {
    if (excludes_.match_folder(name)) return;
    keep(name + "/", origin);
    add_inside(name + "/", origin);
  } else if (excludes_.match_file(name)) {
    return;
  } else if (S_ISREG(status.st_mode)) {
    if (!origin.folder->may_read(origin.name)) fail(origin.path(), errno);
    keep(name, std::move(origin));
  } else if (S_ISLNK(status.st_mode)) {
    std::optional<std::string> target = origin.folder->target_of(origin.name);
    if (!target) fail(origin.path(), errno);
    keep(name, std::move(origin), *std::move(target));
  } else {
    list_.skipped.push_back(origin.path().native());
  }
}

/// The folder of a source is held open from here on: what is below it is reached from there.
void Lister::add_source(const std::string& source) {
  const bool is_content = source.ends_with('/');
  struct stat status {};
  if (::stat(source.c_str(), &status) != 0) {
    if (errno == ENOENT) throw std::runtime_error(fmt::format("there is no {}", source));
    if (errno == ENOTDIR && is_content)
      throw std::runtime_error(fmt::format("{} is no folder", source));
    fail(source, errno);
  }
  // `.` and `..` get the names of the folders that they are.
  const fs::path named = fs::path(source).filename();
  const bool is_dots = named == "." || named == "..";
  const fs::path path = is_dots ? fs::canonical(source) : fs::path(source);
  if (!is_content && !path.has_filename())
    throw std::runtime_error(
        fmt::format("{} has no name to copy it under\nhint: {} stands for "
                    "what is in it",
                    source, source.ends_with('/') ? source : source + "/"));
  if (S_ISDIR(status.st_mode)) {
    const Origin origin{std::make_shared<const OpenFolder>(path), ""};
    if (is_content) return add_inside("", origin);
    return add(path.filename().native(), origin, status);
  }
  const fs::path real = fs::canonical(source);
  const auto folder = std::make_shared<const OpenFolder>(real.parent_path(), path.parent_path());
  const auto file = folder->look_at(real.filename().native());
  if (!file) fail(source, errno);
  add(path.filename().native(), {folder, real.filename().native()}, *file);
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
        fmt::format("{} and {} would both be copied to {}", list_.origins[*twice].path().native(),
                    list_.origins[*(twice + 1)].path().native(), bare(list_.entries[*twice])));
  sort_by([](const host::CopyEntry& entry) -> std::string_view { return entry.name; });
  CopyList sorted;
  for (const std::size_t at : order) {
    sorted.entries.push_back(std::move(list_.entries[at]));
    sorted.origins.push_back(std::move(list_.origins[at]));
  }
  list_.entries = std::move(sorted.entries);
  list_.origins = std::move(sorted.origins);
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
