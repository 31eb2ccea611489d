// SPDX-License-Identifier: MIT
// Folders whose names are hashes of their content, side by side: the versions of what dtool brought
// to this host.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace dtool::host {

/// Whether it is a SHA-256 in lower-case hex.
bool is_hash(const std::string& name);

/// The versions in the folder `all` that were marked last before that time, by the clock of the
/// file system.
std::set<std::string> unused_versions(const std::string& all, std::int64_t before);

/// Marks the version in `folder` as used. Returns the other versions beside it that were not marked
/// for 30 days; none if the folder's name is no hash.
std::set<std::string> mark_used(const std::string& folder);

// The file of this program, `…/host/SHA256/dtool-host`, and the other versions beside it.

std::string own_path();

/// Which of these versions no process here runs.
std::set<std::string> without_running(std::set<std::string> versions);
/// Deletes a version of this program.
void remove_version(const std::string& folder);

/// Marks this version as used. Removes other versions beside it that were not started for 30 days
/// and that no process here runs.
void remove_old_versions();

}  // namespace dtool::host
