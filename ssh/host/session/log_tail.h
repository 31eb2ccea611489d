// SPDX-License-Identifier: MIT
// The ends of a run's files on a host: the last lines of its log and its metrics, and whether their
// disk is full.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

/// The last bytes of a file, at most `most`; empty if it cannot be read.
std::string read_end(const std::string& path, std::size_t most);

struct LogTail {
  std::string said;         ///< message of the launched program about the whole run; or empty
  std::string last;         ///< the last line that is not blank
  std::string explanation;  ///< the explaining_line(); or empty
  std::vector<std::string> lines;  ///< the last five lines that are not blank, each at most 1,000
                                   ///< bytes
};

/// dtool's own lines about the whole run are left out: `cause` has the same content. `marks`:
/// whether lines begin with marks of ranks; the very last line is without its own. `rank`: only its
/// lines count, if there are marks.
enum class Marks { no, yes };
LogTail read_log_tail(const std::string& path, Marks marks = Marks::no,
                      std::optional<int> rank = {});

/// The last whole line `{"event": "NAME"…}` of a metrics file, for one of the names; an empty name
/// stands for an object without `event`. Or empty.
std::string newest_event(const std::string& path, const std::vector<std::string>& names);

/// The mount point of a disk that holds one of these paths and has less than a MiB free; or empty.
std::string find_full_disk(const std::vector<std::string>& paths);

}  // namespace dtool::host
