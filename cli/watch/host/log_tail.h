// The ends of a run's files on a host: what its log and its metrics said last, and whether their
// disk is full.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtool::host {

/// The last bytes of a file, at most `most`; empty if it cannot be read.
std::string read_end(const std::string& path, std::size_t most);

struct LogTail {
  std::string said;                ///< what the launched program said of the whole run; or empty
  std::vector<std::string> lines;  ///< the last five that are not blank, each at most 1,000 bytes
};

/// Lines of dtool's own on the whole run are left out: they say what `cause` says.
LogTail read_log_tail(const std::string& path);

/// The last whole line `{"event": "NAME"…}` of a file of metrics, for one of the names; or empty.
std::string newest_event(const std::string& path, const std::vector<std::string>& names);

/// Where a disk is mounted on which one of these paths lies, if less than a MiB is free there; or
/// empty.
std::string find_full_disk(const std::vector<std::string>& paths);

}  // namespace dtool::host
