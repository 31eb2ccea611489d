// SPDX-License-Identifier: MIT
// What `dtool copy` sends: the files, links and folders of its sources, listed once, before any
// host is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "ssh/wire/copy.h"
#include "sync/open_folder.h"
#include "sync/package_writer.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// Where an entry is on this machine, and how it was when it was listed.
struct Origin {
  std::shared_ptr<const OpenFolder> folder;  ///< the folder of the source
  std::string name;                          ///< the entry's name below `folder`
  Look look = {};

  std::filesystem::path path() const { return folder->shown() / name; }
};

struct CopyList {
  std::vector<host::CopyEntry> entries;  ///< sorted by name; a folder comes before its files
  std::vector<Origin> origins;           ///< the origin of each entry
  std::uint64_t bytes = 0;               ///< the sum of all files' sizes
  std::size_t files = 0;                 ///< the number of files, with links
  std::vector<std::string> skipped;      ///< sockets, pipes and devices
};

/// Lists the sources, in the way of `cp -r`: `data` stands for the file or folder and keeps its
/// name, `data/` for what is in the folder. A source that is a link is followed; links below it are
/// listed as links. `excludes` are patterns (sync/tree.h), matched against the names at the
/// destination. Throws std::runtime_error with a sentence on a source or a file that is not there
/// or cannot be read, and on two things of one name; std::invalid_argument on a pattern.
CopyList list_sources(const std::vector<std::string>& sources,
                      const std::vector<std::string>& excludes);

/// The listing as a package of CopyEntries. `list` must outlive it.
std::shared_ptr<const ssh::SharedBytes> pack_list(const CopyList& list, Compression compression);

}  // namespace dtool::tree_sync
