// SPDX-License-Identifier: MIT
// A session's guard: a small process that notices when the session dies without ending properly, by
// SIGKILL for example. Then it reports to machine 0, and ends the run's processes on this machine.
// It holds the other end of the session's pipe, and survives the loss of the terminal.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "ssh/host/files.h"
#include "ssh/host/session/report.h"

namespace dtool::host {

/// The session's handle to its guard.
class Guard {
 public:
  /// Starts a guard. If that fails, the run continues without one.
  Guard();
  /// If the guard was not dismissed, it acts as if the session had died.
  ~Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// The report that the guard sends if the session dies now.
  void tell(const Report& report);
  /// Tells the guard that the session ends properly.
  void dismiss();
  bool is_alive();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Descriptor pipe_;
};

/// What the guard of a session that died tells machine 0.
struct GuardsWords {
  /// The report that comes before it ends what runs here, if there is something to tell.
  std::optional<Report> failure;
  Report last;  ///< the report after that; else the next attempt would count on this machine
};

/// The processes that are left here run no longer than this.
inline constexpr std::chrono::seconds kForGuardsFailure{5};
inline constexpr std::chrono::seconds kForGuardsLastWords{20};

/// `report`: the session's newest. Pure.
GuardsWords words_of_guard(int place, Report report);

/// The guard's main function, run in the state folder; the session is at the other end of standard
/// input.
int run_guard();

}  // namespace dtool::host
