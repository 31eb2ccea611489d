// SPDX-License-Identifier: MIT
// Separates the output of a login shell (a ~/.bashrc's greeting) from the command's own, for
// streams that it would corrupt, such as rsync's.
#pragma once

#include <string>
#include <string_view>

namespace dtool::ssh {

/// `line` for any login shell, preceded by a mark that shows where the command's output begins.
std::string behind_mark(std::string_view line);

/// Removes everything up to and including the mark from the output of a behind_mark() line.
class LoginOutput {
 public:
  /// The part of `bytes` that is the command's; valid until the next call.
  std::string_view commands_part(std::string_view bytes);

 private:
  bool has_begun_ = false;
  std::string held_;  ///< its end may be the beginning of the mark
};

}  // namespace dtool::ssh
