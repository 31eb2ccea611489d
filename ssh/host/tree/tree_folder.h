// SPDX-License-Identifier: MIT
// A folder of this host that code trees are sent to, and dtool's records of it. The records are
// files below `~/.dtool/trees`. Their names begin with KEY, a name for the folder:
//   KEY.manifest  the sorted names of all files that dtool may have put there, each ended by a NUL
//   KEY.whole     the fingerprint of the tree that is whole there; empty while there is none
//   KEY.stamps    what the kernel knew of the files of that tree when they were put there
//   KEY.lock      the fingerprint of the tree that is being sent
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/tree/inside.h"
#include "ssh/wire/push.h"

namespace dtool::host {

/// Why a host refuses a request: a sentence, and what the user can do about it.
class Refused : public std::runtime_error {
 public:
  explicit Refused(const std::string& sentence, std::string hint = {})
      : runtime_error(sentence), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// For a host on which another launcher began to send another tree meanwhile.
Refused another_is_sending();

/// A path as the user writes it, below the home folder with `~/`.
std::string with_tilde(const std::string& path);

using FileNames = std::vector<std::string>;

/// Throws Refused if a part of an absolute path is neither a folder nor missing.
void refuse_obstacle(const std::string& path);

/// The real path of a folder, which is made if it is missing. `path` may begin with `~/`. Throws
/// Refused.
std::string made_folder(const std::string& path);

/// In the code folder: what parcels bring lies there until all has come, below the name that it
/// will have, and beside it the tree's listing.
inline constexpr const char* kComing = ".~dtool~coming";
inline constexpr const char* kListing = ".~dtool~listing";
/// Beside it: for which tree the folder was made, and in which boot. Files of another tree may have
/// other content and the same size and time; after another boot, files may be there that the power
/// failed on.
inline constexpr const char* kMadeFor = ".~dtool~made_for";
/// What stands in it. Empty if this machine does not tell its boot.
std::string made_for(const std::string& tree);
/// Throws Refused if what stands there is not a folder of this user alone.
void require_own(const std::string& path, const struct stat& status);

/// The beginning of the names of folders that are deleted with the next change, if they are left.
inline constexpr std::string_view kLeftover = ".~dtool~.";
/// Such a name, which no other process gives, whichever host it runs on.
std::string new_leftover();

/// The beginning of a file with which a push marks the folder that a host is handling.
inline constexpr std::string_view kMark = ".~dtool~mark";

class TreeFolder {
 public:
  /// `path` may begin with `~/`. Makes the folder if it is missing. Throws Refused if it cannot be
  /// made or entered, or if other users could change the code there.
  explicit TreeFolder(const std::string& path);

  Inside& inside() { return inside_; }
  /// The code folder: this one, or the one that it stands for.
  const std::string& path() const { return stands_for_.empty() ? path_ : stands_for_; }
  /// From here on path() is `code`, which may be missing. Empty: it stays.
  void stand_for(const std::string& code) { stands_for_ = expand_home(code); }

  /// Whether this tree was the last one to be sent and is unchanged. The answer is valid without
  /// the lock: KEY.whole is emptied before any file is touched.
  bool has(const std::string& tree);
  /// Whether this is the very folder that is sent: on this machine, or seen from another machine
  /// over a network file system with the same inode numbers and times. With a mark that is proven.
  bool is_at(const TreeRoot& root);

  enum class Use { read, write };
  /// Takes the lock: from here on no other process changes the folder. Throws Refused if another
  /// one holds it for too long, or if the folder cannot be written to and is to be.
  void take_lock(Use use = Use::write);
  /// The members below need the lock.
  std::string lock_path() const { return key_ + ".lock"; }
  std::string path_of(const char* ending) const { return key_ + ending; }
  std::string newest() const { return read_line(lock_path()); }
  void set_newest(const std::string& tree);

  /// The tree that is whole and unchanged; or empty. Also reads the manifest.
  std::string find_whole();
  /// Whether the folder is empty, leftovers of an interrupted push aside.
  bool is_empty();

  const FileNames& manifest() const { return manifest_; }
  void read_manifest();
  void write_manifest(FileNames names);
  /// The tree that was found, or put there, since the lock was taken; empty: there is none.
  const std::string& whole() const { return whole_; }
  /// Of the manifest's files, if there is such a tree.
  const FileNames& stamps() const { return stamps_; }
  /// Those of the manifest's files that are here and were changed since they were put here. Empty
  /// if that is not known, because no tree was whole.
  FileNames find_edited();
  /// From here on no tree counts as whole.
  void begin_change() {
    write_in_place(path_of(".whole"), "");
    whole_.clear();
  }
  /// From here on `tree` counts as whole, with files of these names: first they reach the disk, and
  /// what else the manifest has is gone from it. `stamps` belong to the names.
  void end_change(const std::string& tree, FileNames names, const FileNames& stamps);

  void remove_leftovers();
  void remove_marks();

 private:
  void choose_key();
  bool is_untouched();

  std::string path_;
  std::string stands_for_;
  OwnersAlone alone_;  ///< new files in the folder and in its records are private
  Inside inside_;
  std::string trees_;
  std::string key_;
  Descriptor lock_;
  FileNames manifest_;
  FileNames stamps_;
  std::string whole_;
};

/// The largest such file, in bytes.
inline constexpr std::size_t kLargestList = std::size_t{1} << 31U;

/// Reads and writes the lists in those files.
FileNames split_names(std::string_view text);
std::string join_names(const FileNames& names);

/// The names of the first list that the second lacks. Both are sorted.
FileNames names_without(const FileNames& names, const FileNames& others);
/// The names of both lists; all lists are sorted.
FileNames names_of_both(const FileNames& names, const FileNames& others);

/// A file's name, and everything that the kernel changes when the file is touched: a line of
/// KEY.stamps, in the form of `find -printf '%y %m %i %s %C@ ./%P\n'`.
std::string stamp_of(const struct stat& file, const std::string& name);
/// The file's size, in bytes, and its permissions, as the stamp says.
std::uint64_t size_in(std::string_view stamp);
mode_t mode_in(std::string_view stamp);
/// Its name, size, time, permissions and target, as the launcher lists a file (sync/listing.h).
std::string facts_of(const struct stat& file, const std::string& name, const std::string& target);
/// Tells whether two machines see the very same file: `inode size time`.
std::string identity_of(const struct stat& file);

// How hosts that share a folder find each other: a file there with a random name, which one host
// writes and the others find. Numbers such as inodes are equal on machines that share nothing.

/// Leftovers of what was interrupted do no harm: each push and each look has a name of its own.
class Mark {
 public:
  /// `name`: of the push or look, random; empty: the mark is never there and never made. `host`:
  /// this one's number in it.
  Mark(const std::string& folder, const std::string& name, std::int64_t host);

  /// The other host that has the folder in hand.
  std::optional<std::int64_t> holder() const;
  /// This host has it in hand, unless another one was there before: then that one. Where the folder
  /// cannot be written to, nobody has.
  std::optional<std::int64_t> take() const;
  /// Removes what take() made.
  void let_go() const;

 private:
  std::string path_;
  std::int64_t host_;
  bool is_used_ = false;
};

}  // namespace dtool::host
