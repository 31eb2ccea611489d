// SPDX-License-Identifier: MIT
// Deletes what a run that has ended left in ~/.dtool/runs on its hosts. `dtool kill --delete` and
// `dtool list --prune` use it.
#pragma once

#include <cstddef>

#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

class Console;

enum class What { tree, all };  ///< the run's own tree, or the whole folder of the run

/// Deletes it on all hosts of the run, which are the remote's. Names the folders that keep what the
/// run's processes wrote into their tree, and the hosts that could not do it. Returns how many
/// hosts had a tree.
std::size_t remove_on_hosts(Console& console, ssh::Remote& remote,
                            const killfiles::Killfile& killfile, What what);

}  // namespace dtool::cli
