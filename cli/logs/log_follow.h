// Logs as they grow, over as many connections as that takes: for `dtool logs -f` and
// `dtool run --follow`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/logs/log_output.h"
#include "cli/logs/log_stream.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Follows each machine's log until its job has ended. After a lost connection it goes on at the
/// byte where it was.
class FollowedLogs : public LogOutput {
 public:
  /// `tail`: begins with so many lines of each, instead of all.
  FollowedLogs(Console& console, const killfiles::Killfile& run, Fold fold,
               std::optional<std::uint64_t> tail, LogsWithJson with_json = LogsWithJson::keep);

  /// The first task of each machine.
  std::vector<ssh::Task> tasks() const;

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;

 private:
  class Stream : public LogStream {
   public:
    Stream(FollowedLogs& logs, std::size_t host)
        : LogStream(make_unique_path()), logs_(logs), host_(host) {}

   private:
    void on_bytes(std::string_view bytes) override;
    void on_break(std::string_view what) override;
    FollowedLogs& logs_;
    std::size_t host_;
  };

  ssh::Task task(std::size_t host, const std::string& lines) const;

  const killfiles::Killfile& run_;
  std::optional<std::uint64_t> tail_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<bool> was_reached_;
  std::vector<int> tries_;  ///< since the last byte
  std::size_t ended_ = 0;   ///< machines
  bool is_interrupted_ = false;
};

}  // namespace dtool::cli
