// SPDX-License-Identifier: MIT
// Follows jobs until they end: shows their logs as they grow, or each one's last line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/logs/log_output.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"
#include "ssh/wire/run.h"

namespace dtool::cli {

/// Waits for the jobs of the machines `which` and returns their exit codes. On a terminal each
/// machine has a row with its last line; the row of a machine that ended well stays. A failed job
/// has its last lines as its error. Ctrl-C leaves the jobs running.
std::vector<ssh::HostResult> follow_last_lines(Console& console, ssh::Remote& remote,
                                               const killfiles::Killfile& killfile,
                                               const std::vector<std::size_t>& which);

/// How a run ended.
struct FollowedRun {
  std::vector<ssh::HostResult> results;  ///< the jobs' exit codes, one a machine
  std::string cause;                     ///< why the run failed, or empty
};

/// Prints the logs of all machines as they grow; each line begins with its machine. The cause,
/// which ends every machine's log, is printed only once. Ctrl-C leaves the jobs running.
FollowedRun follow_logs(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);

// Follows logs as they grow, reconnecting as needed: for `dtool logs -f` and `dtool run --follow`.

/// Follows each machine's log until its job has ended. After a lost connection it continues at the
/// same byte.
class FollowedLogs : public LogOutput {
 public:
  FollowedLogs(Console& console, const killfiles::Killfile& run, Fold fold,
               const LogSelection& selection, LogsWithJson with_json = LogsWithJson::keep);

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;

 protected:
  bool is_interrupted_ = false;

 private:
  host::LogRequest request(std::size_t host) const override;
  void on_sign_of_life(std::size_t host) override;

  std::vector<bool> was_reached_;
  std::vector<int> tries_;  ///< each machine's tries to connect again since the last byte came
  std::size_t ended_ = 0;   ///< machines
};

}  // namespace dtool::cli
