// What a log-in shell prints before it runs a command (a ~/.bashrc's greeting), told apart from
// what the command prints: for streams that such words would spoil, as rsync's.
#pragma once

#include <string>
#include <string_view>

namespace dtool::ssh {

/// `line` for a log-in shell of any kind, after a mark that says that the command begins.
std::string behind_mark(std::string_view line);

/// Leaves out of the output of a behind_mark() line all up to the mark, and it as well.
class LoginOutput {
 public:
  /// Bytes as they came; what of them is the command's, good until the next call.
  std::string_view commands_part(std::string_view bytes);

 private:
  bool has_begun_ = false;
  std::string held_;  ///< its end may be the beginning of the mark
};

}  // namespace dtool::ssh
