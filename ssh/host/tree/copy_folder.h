// SPDX-License-Identifier: MIT
// A folder of this host that `dtool copy` writes into, and what lies aside in it until all is
// there, in `.~dtool~copy-UID`:
//   lock     held while a request writes; another host of the copy asks in it to be given way
//   owner    which copy writes here, which of its hosts, and from where
//   parts    the beginnings of files; to each the state of its SHA-256
//   parcel   what hosts pass on to each other
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"

namespace dtool::host {

/// The name of the folder that holds these. Each user has one of his own, so that nobody's
/// leftovers are in the way of others.
std::string copy_aside();

/// The name of a file's part. It stands for the very file: name, size and time.
std::string part_name(const CopyEntry& entry);

/// The time that is listed for an entry, and whether a file has it.
inline timespec time_of(const CopyEntry& entry) {
  return {entry.seconds, entry.nanoseconds};
}
inline bool has_time(const CopyEntry& entry, const struct stat& there) {
  return there.st_mtim.tv_sec == entry.seconds && there.st_mtim.tv_nsec == entry.nanoseconds;
}

/// Adds a place of a listing, behind all that are there.
void add_place(std::vector<EntryRun>& runs, std::uint64_t place);

/// The launcher of another copy of this user that is writing into the folder of that path, in its
/// own words; empty: there is none. Writes nothing.
std::string other_owner(const std::string& path, const CopyPlace& place);

/// While it lives, and until finish(), no other request writes there.
class CopyFolder {
 public:
  /// Makes the folder if it is missing. Throws Refused if it cannot be made, or if another copy
  /// writes there.
  explicit CopyFolder(const CopyPlace& place);
  /// For what comes in one request: `path` is a new folder below that of a code tree, which nobody
  /// else knows.
  static std::unique_ptr<CopyFolder> alone(const std::string& path);

  bool is_alone() const { return turn_.empty(); }
  const std::string& path() const { return path_; }
  /// Whether the folder is one to which a code tree is brought before it is put in its place.
  bool is_for_tree() const { return is_for_tree_; }
  /// The folder for messages: for one that a code tree is brought to, where it will be.
  std::string shown() const { return is_for_tree_ ? folder_of(path_) : path_; }
  /// Another host of this copy that writes here: then this one must not.
  std::optional<std::int64_t> holder() const { return holder_; }
  enum class To { own_launcher, any_launcher };
  /// To be called before each step, and while it waits or works for long: it asks at most once a
  /// second. Throws Refused if another host goes on with the copy, because the launcher has lost
  /// this one; or if another launcher waits to send the code tree, and may.
  void give_way(To to = To::own_launcher);
  /// Others may write there from now on.
  void unlock() { lock_ = Descriptor(); }

  Inside& inside() { return inside_; }
  Inside& parts() { return *parts_; }
  /// The name of a part that lies on another disk, beside its file. Of this host and this folder:
  /// the folder's lock does not hold for others that write there.
  std::string beside() const;
  std::string parcel_path() const { return aside_ + "/parcel"; }
  /// Everything is in its place: deletes what lies aside.
  void finish();

 private:
  explicit CopyFolder(const std::string& path);
  void lock(const CopyPlace& place);
  bool hold_aside();
  bool is_lock_taken();
  void require_own_turn(To to) const;
  Refused another_writes() const;
  void take(const CopyPlace& place);

  bool is_for_tree_;
  std::string path_;
  OwnersAlone alone_;
  Inside inside_;
  Descriptor held_;    ///< the folder that lies aside,
  std::string aside_;  ///< a path to that folder, whatever bears its name
  std::string turn_;   ///< the copy and its round; empty: it is alone
  Descriptor lock_;
  std::mutex asking_;                              ///< one thread waits, another one works
  std::optional<std::chrono::nanoseconds> asked_;  ///< the time when give_way() asked last
  std::optional<std::int64_t> holder_;
  std::optional<Inside> parts_;
};

/// Deletes the folder of that path in a code folder, to which parcels were brought.
void remove_coming(Inside& code, const std::string& path);
/// The same unless parcels are taken there.
void remove_idle_coming(Inside& code, const std::string& path);

/// Deletes what copies that were given up left in folders of this host, if no copy has asked for it
/// for 30 days. `~/.dtool/copies` tells which folders these are.
void remove_given_up_copies();

// How much of what `dtool copy` sends has this host, and is there room for the rest? Asked before
// anything is sent, and once more at the end, as the proof that all is there.

/// Throws Refused (ssh/host/tree/tree_folder.h) if nothing can be copied to the folder. The listing
/// is read from `input`.
CopyReply answer_copy(const CopyRequest& request, FrameInput& input);

// Which files and links of this machine came by `dtool copy` or `fetch`, and are as they came: a
// later one replaces those, and no others. `~/.dtool/copied` holds eight bytes for each, a hash of
// what the kernel changes when a file is touched. The newest come last.

class CopiedFiles {
 public:
  /// Whether the file came by a copy, and was not touched since. Reads the list once.
  bool has(const struct stat& file);
  /// For keep().
  void add(const struct stat& file);
  /// Adds to the list what it lacks. A full home is no reason to fail: the next copy then asks.
  void keep();

 private:
  void read();

  std::optional<std::vector<std::uint64_t>> known_;  ///< sorted
  std::vector<std::uint64_t> added_;
};

}  // namespace dtool::host
