// SPDX-License-Identifier: MIT
#include "sync/copy/host/copy_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "ssh/host/message.h"
#include "ssh/host/sha256.h"
#include "ssh/host/words.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {
namespace {

constexpr int kWaitForLock = 60'000;  // milliseconds
/// After this long without a request, a copy counts as ended, wherever its launcher is.
constexpr std::int64_t kForgotten = 120;  // seconds

/// The file `owner`: four lines.
struct Owner {
  std::string copy;
  std::string round;
  std::string host;
  std::string launcher;
};

std::optional<Owner> read_owner(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  Owner owner;
  std::string_view rest = *text;
  for (std::string* line : {&owner.copy, &owner.round, &owner.host, &owner.launcher}) {
    const std::size_t end = rest.find('\n');
    if (end == rest.npos) return std::nullopt;
    *line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  return owner;
}

bool is_other(const Owner& owner, const CopyPlace& place) {
  return owner.copy != place.copy && owner.launcher != place.takes_over;
}

bool is_locked(const std::string& path) {
  const Descriptor lock(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return lock.is_open() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string aside_in(const std::string& path) {
  return path + "/" + kCopyAside;
}

std::string owner_in(const std::string& aside) {
  return aside + "/owner";
}

std::string lock_in(const std::string& aside) {
  return aside + "/lock";
}

bool is_recent(const std::string& path) {
  return age_of(path).value_or(kForgotten) < kForgotten;
}

/// Another user could lead every name in it elsewhere.
void require_own_folder(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid())
    throw Refused(path + " is there and is not a folder of this user's",
                  "delete it, or name another folder");
}

}  // namespace

std::string part_name(const CopyEntry& entry) {
  std::string what = entry.name;
  what += '\0';
  for (const auto number :
       {static_cast<std::int64_t>(entry.size), entry.seconds, entry.nanoseconds})
    what.append(std::to_string(number)).append(" ");
  return to_hex(sha256(what));
}

std::string other_owner(const std::string& path, const CopyPlace& place) {
  const std::string aside = aside_in(path);
  if (exists(aside)) require_own_folder(aside);
  const auto owner = read_owner(owner_in(aside));
  if (!owner || !is_other(*owner, place)) return "";
  return is_recent(owner_in(aside)) || is_locked(lock_in(aside)) ? owner->launcher : "";
}

CopyFolder::CopyFolder(const CopyPlace& place)
    : path_(made_folder(place.folder)), inside_(path_), aside_(aside_in(path_)) {
  lock();
  take(place);
  if (holder_) return;
  ::unlink(parcel_path().c_str());
  const std::string parts = aside_ + "/parts";
  if (!make_folder(parts)) throw Refused(with_reason("cannot make the folder " + parts));
  require_own_folder(parts);
  parts_.emplace(parts);
}

/// Whoever held the lock before may have deleted it with the folder.
void CopyFolder::lock() {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    if (::mkdir(aside_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
      throw Refused(with_reason("cannot make the folder " + aside_),
                    "name another folder, or let the user there write into this one");
    require_own_folder(aside_);
    lock_ = lock_file(lock_in(aside_), kWaitForLock);
    if (!lock_.is_open() && errno == EWOULDBLOCK)
      throw Refused("another dtool is copying into " + path_, "try again when it has ended");
    if (!lock_.is_open() && errno != ENOENT)
      throw Refused(with_reason("cannot lock files in " + aside_));
    struct stat held {};
    struct stat named {};
    const bool is_there = lock_.is_open() && ::fstat(lock_.get(), &held) == 0 &&
                          ::stat(lock_in(aside_).c_str(), &named) == 0;
    if (is_there && held.st_ino == named.st_ino) return;
  }
  throw Refused("cannot lock files in " + aside_);
}

void CopyFolder::take(const CopyPlace& place) {
  const std::string path = owner_in(aside_);
  const auto owner = read_owner(path);
  const std::string round = std::to_string(place.round);
  const std::string host = std::to_string(place.host);
  if (owner && owner->copy == place.copy && owner->round == round && owner->host != host) {
    holder_ = parse_number<std::int64_t>(owner->host);
    if (holder_) return;
  }
  if (owner && is_other(*owner, place) && is_recent(path))
    throw Refused("another dtool is copying into " + path_, "try again when it has ended");
  for (const std::string* word : {&place.copy, &place.launcher})
    if (word->find('\n') != word->npos) throw BadMessage("a copy has no such name");
  write_file(path, place.copy + "\n" + round + "\n" + host + "\n" + place.launcher + "\n");
}

void CopyFolder::finish() {
  parts_.reset();
  inside_.remove_folder(kCopyAside);
}

}  // namespace dtool::host
