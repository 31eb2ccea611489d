// SPDX-License-Identifier: MIT
// A folder and the files below it, by name. Names come from outside. Whatever the names and the
// links in the folder are, nothing outside the folder is looked at, written or deleted.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/files.h"

namespace dtool::host {

class Inside {
 public:
  /// Throws std::runtime_error if the folder cannot be entered.
  explicit Inside(const std::string& path);

  /// Whether missing folders on the way to a file are made.
  enum class Way { as_it_is, made };
  /// The folder that holds a file, and the last part of the file's name. It points into that name.
  struct Spot {
    int folder = -1;  ///< -1: the way does not exist, or part of it is not a folder
    const char* name = "";
  };
  /// Fast for names that come sorted. The folder stays open until the next call.
  Spot find(const std::string& name, Way way = Way::as_it_is);
  Spot find(std::string&& name, Way way = Way::as_it_is) = delete;  ///< the spot would outlive it

  /// The last folder on the way to the file that find() was asked for last; it stays open until the
  /// next call.
  int nearest() const { return open_.empty() ? root_.get() : open_.back().folder.get(); }

  /// The file of that name; a link is not followed.
  std::optional<struct stat> look(const std::string& name);
  /// As look(), but nothing for folders.
  std::optional<struct stat> look_at_file(const std::string& name);
  std::string target_of(const std::string& link);
  Descriptor open_file(const std::string& name);
  /// The file's SHA-256 in hex digits; empty if it cannot be opened. Throws std::runtime_error.
  std::string sum_of(const std::string& name);

  /// Moves a file of another folder here. Throws std::runtime_error.
  void take(Inside& from, const std::string& name) { take(from, name, name); }
  /// The same for a file that has another name there.
  void take(Inside& from, const std::string& old_name, const std::string& name);
  /// The same; but returns false where the file lies on another file system, and leaves it there.
  bool take_if_near(Inside& from, const std::string& old_name, const std::string& name);
  /// Deletes a file, if it is there.
  void drop(const std::string& name);
  /// Deletes files, and the folders that become empty by it. Folders, and names that lead outside,
  /// stay. Returns how many files there were. Throws std::runtime_error.
  std::size_t remove(const std::vector<std::string>& names);
  /// Waits until these files are on the disk, and those that are gone are gone from it. Throws
  /// std::runtime_error.
  void flush(const std::vector<std::string>& files);
  /// Folders that their owner may not write into, and could for a move or a deletion, are as they
  /// were.
  void take_leave_back();
  /// Gives a file or folder that mode, and that time of its last change; no link is followed.
  /// Throws std::runtime_error.
  void set_facts(const std::string& name, mode_t mode, const timespec& time);
  /// Sets the mode of `folder` if it is a folder.
  void set_mode(const std::string& folder, mode_t mode);

  /// The names directly in the folder.
  std::vector<std::string> list() const;
  /// The names directly in a folder below; none if it is no folder.
  std::vector<std::string> list(const std::string& folder);
  /// Deletes a folder below, with its content, as far as possible. What is mounted there stays.
  void remove_folder(const std::string& name);
  /// Closes the open folders below. Call it before others move folders there.
  void forget() { open_.clear(); }

 private:
  void let_write(const std::string& name, int folder);

  struct Open {
    std::string path;
    Descriptor folder;
  };
  Descriptor root_;
  std::vector<Open> open_;  ///< each lies in the one before
  /// The earlier modes of folders that are temporarily writable.
  std::vector<std::pair<std::string, mode_t>> modes_;
};

}  // namespace dtool::host
