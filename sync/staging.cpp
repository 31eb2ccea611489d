// SPDX-License-Identifier: MIT
#include "sync/staging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "ssh/host/files.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/kept_copy.h"
#include "ssh/machine/encodings.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

/// Calls `take` with the file's first bytes, so many at most, piece by piece. Returns how many of
/// them it lacks; nothing if it cannot be opened.
template <typename Take>
std::optional<std::uint64_t> read_first(const fs::path& file, std::uint64_t bytes, Take take) {
  const host::Descriptor opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.is_open()) return std::nullopt;
  while (bytes > 0) {
    const auto piece = host::read_some(opened.get());
    if (!piece) break;
    take(std::string_view(*piece).substr(0, bytes));
    bytes -= std::min<std::uint64_t>(bytes, piece->size());
  }
  return bytes;
}

/// Empty if the file has fewer bytes.
std::string sum_of_first(const fs::path& file, std::uint64_t bytes) {
  ssh::Sha256 sha;
  const auto lacking = read_first(file, bytes, [&](std::string_view piece) { sha.add(piece); });
  return lacking == 0U ? sha.hex() : "";
}

/// Other files than text have zero bytes, and most of these near their beginning.
bool is_text(const fs::path& file) {
  constexpr std::size_t kLooked = 65'536;
  bool has_zeros = false;
  const auto lacking = read_first(file, kLooked, [&](std::string_view piece) {
    has_zeros = has_zeros || piece.find('\0') != piece.npos;
  });
  return lacking && !has_zeros;
}

enum class FileKind { none, folder, link, file };

FileKind kind_of(const fs::path& path) {
  std::error_code unseen;
  const fs::file_type type = fs::symlink_status(path, unseen).type();
  if (type == fs::file_type::not_found) return FileKind::none;
  if (type == fs::file_type::directory) return FileKind::folder;
  return type == fs::file_type::symlink ? FileKind::link : FileKind::file;
}

/// Of two files, or of two links.
bool have_same_content(const fs::path& one, const fs::path& other) {
  std::error_code fault;
  if (kind_of(one) == FileKind::link)
    return fs::read_symlink(one, fault) == fs::read_symlink(other, fault) && !fault;
  const std::uint64_t size = fs::file_size(one, fault);  // only regular files have a size
  if (fault || fs::file_size(other, fault) != size || fault) return false;
  constexpr int kRead = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
  const host::Descriptor first(::open(one.c_str(), kRead));
  const host::Descriptor second(::open(other.c_str(), kRead));
  return first.is_open() && second.is_open() && host::have_same_bytes(first, second);
}

/// Calls `visit` with an iterator at each file, link and folder below; rsync's own folders are
/// passed over. Returns why it could not go on.
template <typename Visit>
std::error_code for_each_below(const fs::path& folder, Visit visit) {
  std::error_code fault;
  fs::recursive_directory_iterator each(folder, fault);
  for (; !fault && each != fs::recursive_directory_iterator(); each.increment(fault)) {
    if (each->path().filename() == kPartial)
      each.disable_recursion_pending();
    else
      visit(each);
  }
  return fault;
}

void require_seen(const std::error_code& fault, const fs::path& folder) {
  if (fault) throw fs::filesystem_error("cannot look into", folder, fault);
}

/// What an earlier pull left there is not known to be whole: rsync goes on from it.
void set_aside(const fs::path& folder) {
  std::vector<fs::path> files;
  const auto fault = for_each_below(folder, [&](const auto& each) {
    if (kind_of(each->path()) != FileKind::folder) files.push_back(each->path());
  });
  require_seen(fault, folder);
  for (const fs::path& file : files) {
    const fs::path aside = file.parent_path() / kPartial;
    fs::create_directory(aside);
    fs::rename(file, aside / file.filename());
  }
}

}  // namespace

void Staging::make() {
  // The pull that had it takes it away at its end, so the one that is held may not be there any
  // more.
  for (bool is_held = false; !is_held;) {
    std::error_code fault;
    fs::create_directory(folder_, fault);
    if (fault || kind_of(folder_) != FileKind::folder)
      throw fs::filesystem_error("cannot make the folder", folder_,
                                 fault ? fault : make_error_code(std::errc::file_exists));
    held_ = host::Descriptor(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // A file server may know no locks.
    if (::flock(held_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw std::runtime_error(
          fmt::format("another dtool is fetching into {}\nhint: wait for its end, or name another "
                      "folder",
                      destination_.string()));
    struct stat held {};
    struct stat there {};
    is_held = ::fstat(held_.get(), &held) != 0 ||
              (::lstat(folder_.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
               held.st_dev == there.st_dev);
  }
  set_aside(folder_);
}

std::vector<std::string> Staging::look() {
  std::map<std::string, Look> found;
  std::vector<std::string> changed;
  for_each_below(folder_, [&](const auto& each) {
    struct stat status {};
    if (::lstat(each->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    const std::string name = each->path().lexically_relative(folder_);
    const Look look = look_of(status);
    const auto before = seen_.find(name);
    if (before == seen_.end() || !is_same(before->second, look)) changed.push_back(name);
    found[name] = look;
  });
  seen_ = std::move(found);
  return changed;
}

void Staging::remember(const std::vector<std::string>& names) {
  remembered_.clear();
  for (const std::string& name : names) {
    const std::uint64_t size = seen_.at(name).size;
    remembered_[name] = {size, sum_of_first(folder_ / name, size)};
  }
}

bool Staging::cut_to_remembered(const std::string& name) const {
  const auto found = remembered_.find(name);
  if (found == remembered_.end()) return false;
  const auto& [size, sha256] = found->second;
  const fs::path file = folder_ / name;
  if (sha256.empty() || !is_text(file) || sum_of_first(file, size) != sha256) return false;
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || ::truncate(file.c_str(), static_cast<off_t>(size)) != 0)
    return false;
  const timespec times[] = {status.st_mtim, status.st_mtim};
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
  return true;
}

Staging::InTheWay Staging::place(const std::vector<std::string>& left_out, Foreign foreign) {
  InTheWay in_the_way;
  /// What is in its place is on record whatever comes: else the next pull takes it for edited.
  struct Recorded : host::CopiedFiles {
    ~Recorded() { keep(); }
  } copied;
  const auto is_foreign = [&](const fs::path& from, const fs::path& to) {
    struct stat there {};
    return foreign == Foreign::refuse && ::lstat(to.c_str(), &there) == 0 && !copied.has(there) &&
           !have_same_content(from, to);
  };
  std::vector<fs::path> folders;
  const auto fault = for_each_below(folder_, [&](auto& each) {
    const fs::path from = each->path();
    const std::string name = from.lexically_relative(folder_);
    const fs::path to = destination_ / name;
    const FileKind kind = kind_of(from);
    const FileKind there = kind_of(to);
    if (there != FileKind::none && there != kind) {
      in_the_way.other_kinds.push_back(name);
      if (kind == FileKind::folder) each.disable_recursion_pending();
    } else if (kind == FileKind::folder) {
      folders.push_back(from);
      if (there == FileKind::none) fs::create_directory(to);
    } else if (std::ranges::count(left_out, name) != 0) {
      return;
    } else if (there != FileKind::none && is_foreign(from, to)) {
      in_the_way.foreign.push_back(name);
    } else {
      fs::rename(from, to);
      struct stat placed {};
      if (::lstat(to.c_str(), &placed) == 0) copied.add(placed);
    }
  });
  require_seen(fault, folder_);
  // What stays aside keeps its folders.
  for (auto each = folders.rbegin(); each != folders.rend(); ++each) ::rmdir(each->c_str());
  ::rmdir(folder_.c_str());
  return in_the_way;
}

}  // namespace dtool::tree_sync
