// SPDX-License-Identifier: MIT
// `--data` of `dtool run`: files and folders that are copied to all hosts before anything starts.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"
#include "sync/copy/copy_list.h"

namespace dtool::cli {

/// One `--data SRC[:DST]`.
struct RunData {
  tree_sync::CopyList list;
  std::string folder;  ///< on the hosts
};

/// What a `--data` names: SRC, and where on the hosts it is to be.
struct DataPlace {
  std::string source;  ///< as list_sources() takes it
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
