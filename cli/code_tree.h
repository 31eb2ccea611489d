// The current folder on its way to the hosts of a run.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/host.h"
#include "ssh/remote.h"
#include "sync/tree.h"

namespace dtool::cli {

/// Where the current folder goes on `host`: `code_path` where it is given; for `local` nowhere, it
/// stays; else its place under the home folder, or `~/NAME`.
std::string code_folder(const ssh::Host& host, const std::string& code_path);

/// The files of the current folder, without those of `excludes` and of the output folder. Throws
/// UsageError where the current folder is the home folder or `/`.
tree_sync::Tree read_code_tree(std::vector<std::string> excludes, const std::string& output_dir);

/// Sends it into `folders`, one a host, and tells the progress.
std::vector<ssh::HostResult> send_code_tree(Console& console, ssh::Remote& remote,
                                            const tree_sync::Tree& tree,
                                            const std::vector<std::string>& folders);

}  // namespace dtool::cli
