// SPDX-License-Identifier: MIT
#pragma once

namespace dtool::tree_sync {

/// What happens to a host's files that have names of what is sent, differ from it, and were not put
/// there by dtool or were changed since, and to changed files that a tree no longer has: the host
/// fails and names them, or they are overwritten and deleted.
enum class Foreign { refuse, overwrite };

}  // namespace dtool::tree_sync
