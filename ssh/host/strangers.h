// SPDX-License-Identifier: MIT
// Which other users of this host decide what a path leads to.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace dtool::host {

/// Which of the other users count.
enum class Strangers {
  all,        ///< everybody but this user and root
  uninvited,  ///< those who could put something into a folder where others write, such as /tmp. Who
              ///< has a folder where only root or this user writes was let in by them.
};

/// A folder or link on the way to a path, and the other user to whom it belongs.
struct Stranger {
  std::string path;
  uid_t user = 0;
};

/// The first one on the way to `path` (absolute, or from `~/`), also on the way of each link there.
/// Parts of the way that are missing are nobody's.
std::optional<Stranger> find_stranger(const std::string& path, Strangers which);

/// Whether that is a user who is neither this one nor root.
bool is_strangers(uid_t owner);

/// By /etc/passwd, since a static program has no name service; else the number.
std::string name_of_user(uid_t user);

/// `PATH belongs to NAME`.
std::string to_string(const Stranger& stranger);

}  // namespace dtool::host
