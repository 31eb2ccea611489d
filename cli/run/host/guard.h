// A session's guard: a small process of its own that notices when the session dies without having
// ended, by SIGKILL for one. Then it tells machine 0, and ends what the run has on this machine.
// It has the session's end of a pipe, and survives the loss of the terminal.
#pragma once

#include <sys/types.h>

#include "cli/run/host/report.h"
#include "ssh/host/files.h"

namespace dtool::host {

/// The session's hold on its guard.
class Guard {
 public:
  /// Starts one. Without one the run goes on all the same.
  Guard();
  /// Where it was not dismissed, it acts as if the session had died.
  ~Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// What it says in the session's place, if that dies now.
  void tell(const Report& report);
  /// The session ends well.
  void dismiss();
  bool is_alive();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Descriptor pipe_;
};

/// What the guard does, in the state folder; the session is at the other end of standard input.
int run_guard();

}  // namespace dtool::host
