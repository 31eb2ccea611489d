// SPDX-License-Identifier: MIT
#include "ssh/host/tree/copy_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/strangers.h"
#include "ssh/wire/message.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kWaitForLock{60};
/// Launchers that send one code tree take turns, parcel by parcel.
constexpr std::chrono::seconds kWaitForTree{600};
/// File servers free the locks of a host that is gone after 90 s, as a rule.
constexpr std::chrono::seconds kWaitForGone{120};
constexpr std::chrono::seconds kAskAgain{1};
/// What another launcher that waits for its turn writes into the lock.
constexpr const char* kAwaited = "awaited";
/// After this long without a request, a copy counts as ended, wherever its launcher is.
constexpr std::int64_t kForgotten = 120;  // seconds
/// After this long what it left is deleted.
constexpr std::int64_t kOld = 30 * 86400;  // seconds

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

/// Launchers that send code have no names: each may go on with what another one has begun.
bool is_other(const Owner& owner, const CopyPlace& place) {
  return owner.copy != place.copy && owner.launcher != place.takes_over;
}

bool is_locked(const std::string& path) {
  const Descriptor lock(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return lock.is_open() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// The other host of the same copy that has written it, in the same round.
std::optional<std::int64_t> other_host(const Owner& owner, const CopyPlace& place) {
  if (owner.copy != place.copy || owner.round != std::to_string(place.round)) return std::nullopt;
  const auto host = parse_number<std::int64_t>(owner.host);
  return host == place.host ? std::nullopt : host;
}

/// Whether the launcher knows that whoever has written it is to go on no more.
bool is_given_up(const Owner& owner, const CopyPlace& place) {
  if (owner.copy == place.copy)
    return parse_number<std::int64_t>(owner.round).value_or(-1) < place.round;
  return !place.takes_over.empty() && owner.launcher == place.takes_over;
}

/// Whether the launcher has lost this host, and another one goes on with the copy.
bool is_past(const Owner& owner, const CopyPlace& place) {
  return owner.copy == place.copy &&
         parse_number<std::int64_t>(owner.round).value_or(-1) > place.round;
}

std::string aside_in(const std::string& path) {
  return path + "/" + copy_aside();
}

std::string owner_in(const std::string& aside) {
  return aside + "/owner";
}

std::string lock_in(const std::string& aside) {
  return aside + "/lock";
}

/// With the time that this machine slept.
std::chrono::nanoseconds time_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// A time to come is of a clock that was wrong.
bool is_recent(const std::string& path) {
  return std::abs(age_of(path).value_or(kForgotten)) < kForgotten;
}

/// Another user could lead every name in it elsewhere, or have given one of the user's folders this
/// name: only this program makes such a folder, for the user alone, and with these names in it.
bool is_ours(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return false;
  const std::vector<std::string> names = list_folder(path);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "lock" || name == "owner" || name == "owner.new" || name == "parcel" ||
           name == "parts" || name.starts_with(".nfs");  // a file server's name for deleted files
  });
}

void require_ours(const std::string& path) {
  if (is_ours(path)) return;
  struct stat status {};
  const bool is_others = ::lstat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
  throw Refused(path + (is_others ? " belongs to " + name_of_user(status.st_uid) + " and" : "") +
                    " is not a folder that dtool made for " + name_of_user(::geteuid()) +
                    ", who copies here",
                "delete it or have it deleted, or name another folder");
}

/// As a whole: nobody finds half of it. What an earlier one left of that goes, too. The lock is let
/// go before the files are deleted, since a file server keeps files that are open.
void remove_aside(Inside& inside, const std::string& aside, Descriptor& lock) {
  const std::string gone = copy_aside() + ".gone";
  constexpr int kMost = 100;
  for (int i = 0; i < kMost; ++i) {
    const std::string name = folder_of(aside) + "/" + gone + std::to_string(i);
    if (::rename(aside.c_str(), name.c_str()) == 0 || errno == ENOENT) break;
  }
  lock = Descriptor();
  for (const std::string& name : inside.list()) {
    if (!name.starts_with(gone) || !parse_number<int>(name.substr(gone.size()))) continue;
    if (is_ours(folder_of(aside) + "/" + name)) inside.remove_folder(name);
  }
}

std::string copies() {
  return expand_home("~/.dtool/copies");
}

std::string name_here() {
  return read_line("/proc/sys/kernel/hostname");
}

/// A file with the host's name and the folder's path: homes are often shared where folders are not.
std::string note_of(const std::string& folder) {
  return copies() + "/" + to_hex(sha256(name_here() + "\n" + folder));
}

void note(const std::string& folder) {
  const std::string file = note_of(folder);
  if (exists(file) || !make_folders(copies())) return;
  try {
    write_file(file, name_here() + "\n" + folder + "\n");
  } catch (const std::runtime_error&) {
    // A full home is no reason to refuse a copy to another disk.
  }
}

/// The name of a code tree's copy begins with the tree's fingerprint.
std::string_view tree_of(std::string_view copy) {
  return copy.substr(0, copy.find('.'));
}

bool is_coming(const std::string& folder) {
  return std::string_view(folder).substr(folder.rfind('/') + 1).starts_with(kComing);
}

/// As the question had it made; but the push of another launcher may have ended, and deleted it.
std::string made_for_tree(const std::string& folder) {
  const std::string path = made_folder(folder_of(folder)) + folder.substr(folder.rfind('/'));
  struct stat status {};
  if ((::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) ||
      ::lstat(path.c_str(), &status) != 0)
    throw Refused(with_reason("cannot make the folder " + path));
  require_own(path, status);
  return path;
}

}  // namespace

std::string copy_aside() {
  return ".~dtool~copy-" + std::to_string(::geteuid());
}

std::string CopyFolder::beside() const {
  return copy_aside() + "." + to_hex(sha256(name_here() + "\n" + path_)) + ".part";
}

std::string part_name(const CopyEntry& entry) {
  std::string what = entry.name;
  what += '\0';
  for (const auto number :
       {static_cast<std::int64_t>(entry.size), entry.seconds, entry.nanoseconds})
    what.append(std::to_string(number)).append(" ");
  return to_hex(sha256(what));
}

void add_place(std::vector<EntryRun>& runs, std::uint64_t place) {
  if (runs.empty() || runs.back().first + runs.back().count != place) runs.push_back({place, 0});
  ++runs.back().count;
}

std::string other_owner(const std::string& path, const CopyPlace& place) {
  const std::string aside = aside_in(path);
  if (exists(aside)) require_ours(aside);
  const auto owner = read_owner(owner_in(aside));
  if (!owner || !is_other(*owner, place)) return "";
  return is_recent(owner_in(aside)) || is_locked(lock_in(aside)) ? owner->launcher : "";
}

CopyFolder::CopyFolder(const CopyPlace& place)
    : is_for_tree_(is_coming(place.folder)),
      path_(is_for_tree_ ? made_for_tree(place.folder) : made_folder(place.folder)),
      inside_(path_),
      turn_(place.copy + " " + std::to_string(place.round)) {
  lock(place);
  if (holder_) return;
  if (is_for_tree_) inside_ = Inside(path_);  // the folder in which the lock was taken
  take(place);
  if (holder_) return;
  ::unlink(parcel_path().c_str());
  note(path_);
  const std::string parts = aside_ + "/parts";
  if (!make_folder(parts))
    throw Refused(with_reason("cannot make the folder " + aside_in(path_) + "/parts"));
  parts_.emplace(parts);
}

CopyFolder::CopyFolder(const std::string& path)
    : is_for_tree_(true), path_(path), inside_(path), aside_(aside_in(path)) {
  if (!make_folder(aside_) || !make_folder(aside_ + "/parts"))
    throw std::runtime_error(with_reason("cannot make the folder " + aside_));
  parts_.emplace(aside_ + "/parts");
}

std::unique_ptr<CopyFolder> CopyFolder::alone(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0)
    throw std::runtime_error(with_reason("cannot make the folder " + path));
  return std::unique_ptr<CopyFolder>(new CopyFolder(path));
}

/// Whoever may write in the folder can give the name to something else at any moment: what is used
/// is the folder that was proven to be this user's. False: it is gone again.
bool CopyFolder::hold_aside() {
  const std::string path = aside_in(path_);
  if (is_for_tree_) made_for_tree(path_);  // another push may have ended, and deleted it
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    if (is_for_tree_ && errno == ENOENT) return false;
    throw Refused(with_reason("cannot make the folder " + path),
                  "name another folder, or let the user there write into this one");
  }
  held_ = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!held_.is_open() && errno != ENOENT && errno != ENOTDIR && errno != ESTALE)
    throw Refused(with_reason("cannot enter " + path));
  aside_ = "/proc/self/fd/" + std::to_string(held_.get());
  if (held_.is_open() && is_ours(aside_ + "/.")) return true;
  if (exists(path)) require_ours(path);
  return false;
}

/// Whoever held the lock before may have deleted it with the folder, which has another name
/// meanwhile.
bool CopyFolder::is_lock_taken() {
  constexpr int kAtOnce = 200;  // milliseconds
  lock_ = lock_file(lock_in(aside_), kAtOnce);
  if (!lock_.is_open() && errno != EWOULDBLOCK && errno != ENOENT)
    throw Refused(with_reason("cannot lock files in " + aside_in(path_)));
  struct stat held {};
  struct stat named {};
  const bool is_there = lock_.is_open() && ::fstat(lock_.get(), &held) == 0 &&
                        ::lstat(lock_in(aside_in(path_)).c_str(), &named) == 0;
  if (is_there && held.st_ino == named.st_ino) return ::ftruncate(lock_.get(), 0) == 0;
  lock_ = Descriptor();
  return false;
}

/// A host that the launcher has lost holds the lock while it waits for bytes: it is asked to give
/// way, in the file itself, since hosts see at once what is in a file that they open.
void CopyFolder::lock(const CopyPlace& place) {
  const auto begin = Clock::now();
  const auto patience = is_for_tree_ ? kWaitForTree : kWaitForLock;
  for (;;) {
    if (hold_aside() && is_lock_taken()) return;
    const auto owner = read_owner(owner_in(aside_));
    if (owner) holder_ = other_host(*owner, place);
    if (holder_) return;
    if (owner && is_past(*owner, place)) throw Refused("another host goes on with this copy");
    const bool is_gone = owner && is_given_up(*owner, place);
    if (is_gone && read_line(lock_in(aside_)) != turn_)
      write_in_place(lock_in(aside_), turn_ + "\n");
    if (is_for_tree_ && read_line(lock_in(aside_)).empty())
      write_in_place(lock_in(aside_), std::string(kAwaited) + "\n");
    const auto waited = Clock::now() - begin;
    if (is_gone && waited > kWaitForGone)
      throw Refused(
          "a host that does not answer any more holds " + lock_in(aside_in(path_)),
          "delete " + aside_in(path_) + ", and copy again: files that are not whole come anew");
    if (!is_gone && waited > patience) throw another_writes();
  }
}

/// On a file server each question is four round trips, and a parcel may have thousands of small
/// files. A host that holds the lock is alone here, so it must only let go soon when it is asked
/// to. A host whose lock a file server has freed was silent for longer than a second, so it asks
/// before its next step. Between question and step another host may begin at any rate: what makes
/// that harmless is that a part is never cut (take_parcel.cpp).
void CopyFolder::give_way(To to) {
  if (is_alone()) return;
  const std::scoped_lock alone(asking_);
  const std::chrono::nanoseconds now = time_since_boot();
  if (asked_ && now - *asked_ < kAskAgain) return;
  asked_ = now;  // an answer may be on its way for long
  require_own_turn(to);
}

void CopyFolder::require_own_turn(To to) const {
  const std::string turn = read_line(lock_in(aside_));
  const auto owner = read_owner(owner_in(aside_));
  // While the lock is not held, another launcher may take its turn with a code tree.
  const bool is_own = owner && turn_.starts_with(owner->copy + " ");
  const bool is_others =
      owner && (is_own || !is_for_tree_) && owner->copy + " " + owner->round != turn_;
  const bool may_stay =
      turn.empty() || turn == turn_ || (turn == kAwaited && to == To::own_launcher);
  if (is_others || !may_stay) throw Refused("another host goes on with this copy");
}

void CopyFolder::take(const CopyPlace& place) {
  const std::string path = owner_in(aside_);
  const auto owner = read_owner(path);
  if (owner) holder_ = other_host(*owner, place);
  if (holder_) return;
  if (owner && is_past(*owner, place)) throw Refused("another host goes on with this copy");
  if (owner && is_other(*owner, place) && is_recent(path)) throw another_writes();
  // Another tree's files may lie there.
  if (is_for_tree_ && owner && tree_of(owner->copy) != tree_of(place.copy) &&
      !write_in_place(path_ + "/" + kMadeFor, "several\n"))
    throw Refused(with_reason("cannot write " + path_ + "/" + kMadeFor));
  for (const std::string* word : {&place.copy, &place.launcher})
    if (word->find('\n') != word->npos) throw BadMessage("a copy has no such name");
  write_file(path, place.copy + "\n" + std::to_string(place.round) + "\n" +
                       std::to_string(place.host) + "\n" + place.launcher + "\n");
}

Refused CopyFolder::another_writes() const {
  const char* const does = is_for_tree_ ? "sending its code to " : "copying into ";
  return Refused(std::string("another dtool is ") + does + shown(), "try again when it has ended");
}

void CopyFolder::finish() {
  parts_.reset();
  remove_aside(inside_, aside_in(path_), lock_);
  if (!exists(aside_in(path_))) ::unlink(note_of(path_).c_str());
}

void remove_idle_coming(Inside& code, const std::string& path) {
  const std::string aside = aside_in(path);
  const Descriptor lock = exists(aside) ? lock_file(lock_in(aside), 0) : Descriptor();
  if (lock.is_open() || !exists(aside)) remove_coming(code, path);
}

/// As a whole: whoever waits for the lock in it makes a new one.
void remove_coming(Inside& code, const std::string& path) {
  const std::string gone = new_leftover();
  if (::rename(path.c_str(), (folder_of(path) + "/" + gone).c_str()) == 0) code.remove_folder(gone);
  ::unlink(note_of(path).c_str());
}

void remove_given_up_copies() {
  for (const std::string& name : list_folder(copies())) {
    const std::string file = copies() + "/" + name;
    const std::string text = read_file(file).value_or("");
    const std::string head = name_here() + "\n";
    if (age_of(file).value_or(0) < kOld || !text.starts_with(head) || !text.ends_with('\n'))
      continue;
    const std::string folder = text.substr(head.size(), text.size() - head.size() - 1);
    const std::string aside = aside_in(folder);
    const auto is_used = [&aside] {
      const auto age = age_of(owner_in(aside));
      return (age ? age : age_of(aside)).value_or(kOld) < kOld;
    };
    try {
      if (exists(aside)) {
        if (is_used()) continue;
        require_ours(aside);
        Descriptor lock = lock_file(lock_in(aside), 0);
        if (!lock.is_open() || is_used()) continue;
        Inside inside(folder);
        remove_aside(inside, aside, lock);
        // All of it came for a code tree (tree_folder.h).
        if (is_coming(folder)) {
          Inside code(folder_of(folder));
          remove_idle_coming(code, folder);
        }
      }
      // Where the disk is not there, it is tried again.
      if (is_folder(is_coming(folder) ? folder_of(folder) : folder) && !exists(aside))
        ::unlink(file.c_str());
    } catch (const std::exception&) {
      // It is tried again.
    }
  }
}

}  // namespace dtool::host
