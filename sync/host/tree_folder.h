// A folder of this host that code trees are sent to, and what dtool knows of it, in files below
// `~/.dtool/trees` whose names begin with KEY, a name for the folder:
//   KEY.manifest  the sorted names of all files that dtool may have put there, each ended by a NUL
//   KEY.whole     the fingerprint of the tree that is whole there; empty while there is none
//   KEY.stamps    what the kernel knew of the files of that tree when they were put there
//   KEY.lock      the fingerprint of the tree that is being sent
//   KEY.coming    that fingerprint and the names of that tree's files, each ended by a NUL
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/protocol.h"
#include "sync/host/inside.h"

namespace dtool::host {

/// Why a host does not do what it was asked for: a sentence, and what the user can do about it.
class Refused : public std::runtime_error {
 public:
  explicit Refused(const std::string& sentence, std::string hint = {})
      : runtime_error(sentence), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

using FileNames = std::vector<std::string>;

/// A file in which a push marks the folder that a host has in hand begins so.
inline constexpr std::string_view kMark = ".~dtool~mark";

class TreeFolder {
 public:
  /// `path` may begin with `~/`. Makes the folder where it is missing. Throws Refused: it cannot be
  /// made or entered, or others could put other code there.
  explicit TreeFolder(const std::string& path);

  Inside& inside() { return inside_; }
  const std::string& path() const { return path_; }

  /// Whether the tree was the last one to be sent, and is there as it was then. That holds without
  /// the lock: KEY.whole is emptied before any file is touched.
  bool has(const std::string& tree);
  /// Whether this is the very folder that is sent: on this machine, or seen from another one over a
  /// network's file system, where inode numbers and times are the same.
  bool is_at(const TreeRoot& root);

  /// From here on nobody else changes the folder. Throws Refused where others do so for long.
  void take_lock();
  /// The rest is for who has the lock.
  std::string lock_path() const { return key_ + ".lock"; }
  std::string path_of(const char* ending) const { return key_ + ending; }
  std::string newest() const { return read_line(lock_path()); }
  void set_newest(const std::string& tree);

  /// The tree that is whole and untouched; or empty. Reads the manifest, too.
  std::string find_whole();
  /// Whether there is nothing but what an interrupted push may have left.
  bool is_empty();

  const FileNames& manifest() const { return manifest_; }
  void read_manifest();
  void write_manifest(FileNames names);
  /// Of the files of the manifest, where find_whole() found a tree.
  const FileNames& stamps() const { return stamps_; }
  /// From here on no tree is whole.
  void begin_change() { write_in_place(path_of(".whole"), ""); }
  /// From here on this one is. `stamps` are those of the manifest's files.
  void end_change(const std::string& tree, const FileNames& stamps);

  void remove_leftovers();
  void remove_marks();

 private:
  void choose_key();
  bool is_untouched();

  /// What is made in the folder and noted of it is for nobody else's eyes.
  class OwnEyes {
   public:
    OwnEyes();
    ~OwnEyes();

   private:
    mode_t before_;
  };

  std::string path_;
  OwnEyes own_eyes_;
  Inside inside_;
  std::string trees_;
  std::string key_;
  Descriptor lock_;
  FileNames manifest_;
  FileNames stamps_;
};

/// Of such a file, in bytes.
inline constexpr std::size_t kLargestList = std::size_t{1} << 31U;

/// As read and written in those files.
FileNames split_names(std::string_view text);
std::string join_names(const FileNames& names);

/// The names of the first list that the second lacks; both are sorted.
FileNames names_without(const FileNames& names, const FileNames& others);
/// The names of both lists, sorted as they are.
FileNames names_of_both(const FileNames& names, const FileNames& others);

/// What the kernel changes of a file whenever somebody touches it, and its name: a line of
/// KEY.stamps, as `find -printf '%y %m %i %s %C@ ./%P\n'` has it.
std::string stamp_of(const struct stat& file, const std::string& name);
/// Its name, size, time, mode and target: `find -printf './%P %s %T@ %m %l\n'`.
std::string facts_of(const struct stat& file, const std::string& name, const std::string& target);
/// By what a file is the very same one that another machine sees: `inode size time`.
std::string identity_of(const struct stat& file);

}  // namespace dtool::host
