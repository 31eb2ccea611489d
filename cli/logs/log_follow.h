// Logs as they grow, over as many connections as that takes: for `dtool logs -f` and
// `dtool run --follow`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/logs/log_output.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Follows each machine's log until its job has ended. After a lost connection it goes on at the
/// byte where it was.
class FollowedLogs : public LogOutput {
 public:
  /// `tail`: begins with so many lines of each, instead of all.
  FollowedLogs(Console& console, const killfiles::Killfile& run, Fold fold,
               std::optional<std::uint64_t> tail, LogsWithJson with_json = LogsWithJson::keep);

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;

 private:
  host::LogRequest request(std::size_t host) const override;
  void on_sign_of_life(std::size_t host) override;

  std::vector<bool> was_reached_;
  std::vector<int> tries_;  ///< since the last byte
  std::size_t ended_ = 0;   ///< machines
  bool is_interrupted_ = false;
};

}  // namespace dtool::cli
