// SPDX-License-Identifier: MIT
// `dtool copy --from`: files and folders of hosts to this machine, a folder for each host.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"
#include "sync/pull.h"

namespace dtool::cli {

/// What came from one host.
struct FromHost {
  ssh::HostResult result;
  std::filesystem::path folder;  ///< on this machine
  tree_sync::Sent sent = {};
  std::optional<std::size_t> same_as = {};  ///< a host that sees the same folders: they came from
                                            ///< there
};

/// Copies the sources of all hosts of the Remote into `destination`, and names the hosts that
/// failed. Throws UsageError if it cannot be written. `foreign` is about files and links here.
std::vector<FromHost> copy_from_hosts(Console& console, ssh::Remote& remote,
                                      const std::vector<std::string>& sources,
                                      const std::filesystem::path& destination,
                                      tree_sync::Foreign foreign);

}  // namespace dtool::cli
