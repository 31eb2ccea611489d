// SPDX-License-Identifier: MIT
// A folder of dtool's own for a code tree, `~/.dtool/code/NAME`. `dtool rerun` sends an earlier
// run's tree there, since the code folder may hold newer code by now.
#pragma once

#include <string>

#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// make_own_tree() of a folder that may be such a one: then the run's tree has links to the files
/// of the code folder, and the stored tree counts as just used. The caller holds the folder's lock.
void make_own_tree_of_code(TreeFolder& folder, const OwnTree& own, const std::string& tree);

/// Deletes stored trees, with dtool's records of them, that no run was made of for 30 days.
void remove_old_stored_trees();

}  // namespace dtool::host
