// SPDX-License-Identifier: MIT
// Folders whose names are hashes of their content, side by side: the versions of what dtool brought
// to this host.
#pragma once

#include <set>
#include <string>

namespace dtool::host {

/// Whether it is a SHA-256 in lower-case hex.
bool is_hash(const std::string& name);

/// Marks the version in `folder` as used. Returns the other versions beside it that were not marked
/// for 30 days; none if the folder's name is no hash.
std::set<std::string> mark_used(const std::string& folder);

// The file of this program, `…/host/SHA256/dtool-host`, and the other versions beside it.

std::string own_path();

/// Marks this version as used. Removes other versions beside it that were not started for 30 days
/// and that no process here runs.
void remove_old_versions();

}  // namespace dtool::host
