// SPDX-License-Identifier: MIT
// Copies files and folders of this machine to all hosts, and shows it: `dtool copy`, and the data
// of a run.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"
#include "sync/copy/copy_list.h"
#include "sync/copy/copying.h"

namespace dtool::cli {

/// What Ctrl-C means for a copy.
inline constexpr const char* kCopyInterrupted =
    "interrupted: what has come stays, and the same command goes on from there";

/// What came of a copy.
struct Copied {
  int exit_code = 0;  ///< kNotDone: some hosts cannot take it, and nothing was written on any
  std::vector<tree_sync::CopyHost> hosts;  ///< all; of kNotDone those that cannot take it
};

/// Lists what is to be copied (sync/copy/copy_list.h). Throws UsageError if something cannot be
/// read, or if there is nothing.
tree_sync::CopyList list_to_copy(Console& console, const std::vector<std::string>& sources,
                                 const std::vector<std::string>& excludes);

/// Throws UsageError for `$HOME/x` and `~other/x`: no shell on the hosts reads a path.
void require_path_of_hosts(const std::string& text);

/// The folder as hosts are told it: a relative path begins in the home folder.
std::string folder_on_hosts(const std::string& text);

/// A path of this machine as the user named it, with the home folder for a `~` that no shell has
/// replaced.
std::string path_here(const std::string& text);

/// Copies to all hosts of the Remote, and names those that failed. `foreign` decides about files
/// there that differ and did not come by a copy, or were edited since. Throws UsageError if another
/// copy is at work in the folder.
Copied copy_to_hosts(Console& console, ssh::Remote& remote, tree_sync::CopyList& list,
                     const std::string& folder, tree_sync::Foreign foreign);

// `--data` of `dtool run`: files and folders that are copied to all hosts before anything starts.

/// One `--data SRC[:DST]`.
struct RunData {
  tree_sync::CopyList list;
  std::string folder;  ///< the folder on the hosts
};

/// What a `--data` names: SRC, and where on the hosts it is to be.
struct DataPlace {
  std::string source;  ///< the text that list_sources() takes
  std::string folder;
};

/// The place for a text, SRC or SRC:DST. SRC becomes DST; without DST, the same path there (below
/// the home folder if it is below this one). Throws UsageError.
DataPlace place_of_data(const std::string& text);

/// The same text, which means the same in any current folder.
std::string data_to_record(const std::string& text);

/// Those of a recorded run whose SRC is gone from this machine are left out, with a note.
void leave_out_gone(Console& console, std::vector<std::string>& texts);

/// Lists all of them. Throws UsageError if one cannot be read.
std::vector<RunData> list_data(Console& console, const std::vector<std::string>& texts);

/// Copies them to all hosts; whether all hosts have all.
bool supply_data(Console& console, ssh::Remote& remote, std::vector<RunData>& data,
                 tree_sync::Foreign foreign);

}  // namespace dtool::cli
