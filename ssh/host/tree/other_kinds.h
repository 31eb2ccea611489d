// SPDX-License-Identifier: MIT
// Looks for what a person has put where a code tree has something of another kind: a file or a link
// where it has a folder, a folder where it has a file or a link. Nothing replaces that.
#pragma once

#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {

/// Throws Refused, with the first few names, if there is any. `coming`: the names of the tree's
/// files, sorted. What dtool has put there is not in the way; the manifest must have been read.
void refuse_other_kinds(TreeFolder& folder, const FileNames& coming);

}  // namespace dtool::host
