// SPDX-License-Identifier: MIT
// A folder that is held open, and what is below it. Whoever may write there can put a link in the
// place of a file or folder at any moment, so no link is followed, on no part of a name.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ssh/machine/files.h"

namespace dtool::tree_sync {

/// Opens what has that name below an open folder. None, and errno, if it is not there or if the
/// name leads over a link. `flags`: as for open(2).
ssh::OwnedFd open_below(int folder, const std::string& name, int flags);
/// The same, as it is done where the kernel does not do it at once.
ssh::OwnedFd open_step_by_step(int folder, const std::string& name, int flags);

/// Names are relative to the folder, without a slash at their end. Fast for names that come sorted,
/// since the folder of the last one stays open. For one thread.
class OpenFolder {
 public:
  /// If it cannot be opened, nothing is found below it. `shown`: what to call it in messages.
  OpenFolder(const std::filesystem::path& path, std::filesystem::path shown);
  explicit OpenFolder(const std::filesystem::path& path) : OpenFolder(path, path) {}

  const std::filesystem::path& shown() const { return shown_; }

  /// Nothing if it cannot be looked at; errno says why.
  std::optional<struct stat> look_at(const std::string& name) const;
  /// Whether this user may read it, as far as its mode says.
  bool may_read(const std::string& name) const;
  /// Where a link leads; nothing if it is no link.
  std::optional<std::string> target_of(const std::string& link) const;
  /// A file to read. It may be called on any thread.
  ssh::OwnedFd open_file(const std::string& name) const;
  /// The names in a folder (empty: this one), sorted. A folder's name ends with a slash where the
  /// file system tells at once that it is one: so they are in the order that the files of all
  /// folders will have. Nothing, and errno, if it cannot be read.
  std::optional<std::vector<std::string>> names_in(const std::string& folder) const;

 private:
  struct Spot {
    int folder;
    const char* name;
  };
  Spot find(const std::string& name) const;

  std::filesystem::path shown_;
  ssh::OwnedFd fd_;
  mutable std::string last_;  ///< the folder that is open
  mutable ssh::OwnedFd last_fd_;
};

}  // namespace dtool::tree_sync
