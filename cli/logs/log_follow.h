// SPDX-License-Identifier: MIT
// Follows logs as they grow, reconnecting as needed: for `dtool logs -f` and `dtool run --follow`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/logs/log_output.h"
#include "ssh/remote.h"
#include "ssh/wire/log.h"

namespace dtool::cli {

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

 private:
  host::LogRequest request(std::size_t host) const override;
  void on_sign_of_life(std::size_t host) override;

  std::vector<bool> was_reached_;
  std::vector<int> tries_;  ///< since the last byte came
  std::size_t ended_ = 0;   ///< machines
  bool is_interrupted_ = false;
};

}  // namespace dtool::cli
