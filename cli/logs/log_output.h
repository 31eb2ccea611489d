// SPDX-License-Identifier: MIT
// Shows logs on the console as they come from the hosts: for `dtool logs` and `dtool run --follow`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/large_texts.h"
#include "cli/logs/log_lines.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/run.h"

namespace dtool::cli {

// One machine's log as dtool-host sends it (host::LogRequest): its bytes, and their place in the
// file. Another connection can continue from that place.

class LogStream {
 public:
  virtual ~LogStream() = default;

  /// Takes dtool-host's output. Anything that is not a log becomes a fault, and the rest is
  /// ignored.
  void add(std::string_view bytes);
  /// Call it when another connection begins.
  void begin_again();

  bool has_begun() const { return has_begun_; }
  /// Who the host says it is.
  const std::string& host() const { return host_; }
  /// How many bytes of the file were handed on.
  std::uint64_t offset() const { return offset_; }
  /// The last of them: they identify the file by its content.
  const std::string& last() const { return last_; }
  /// The ranks whose lines it has, and whether the lines have marks.
  const host::RanksOfLog& ranks() const { return ranks_; }
  /// How the log ended, once the host has said so.
  const std::optional<host::LogEnd>& log_end() const { return end_; }
  /// Why there is no log, or no more of it; or empty.
  const std::string& fault() const { return fault_; }

 protected:
  virtual void on_bytes(std::string_view bytes) = 0;
  enum class Break { rotated, truncated, lost };
  /// The following bytes are from another file, or from the beginning of this one. `lost`: the
  /// place is gone, and so is every file that had it.
  virtual void on_break(Break what) = 0;
  /// The host's message, once a second, that it is still there.
  virtual void on_sign_of_life() {}

 private:
  void take(const host::Frame& frame);
  void pass_on(std::string_view bytes);
  void break_off(Break what);

  host::FrameReader reader_;
  std::string last_;
  std::uint64_t offset_ = 0;
  bool has_begun_ = false;
  std::string host_;
  host::RanksOfLog ranks_;
  std::optional<host::LogEnd> end_;
  std::string fault_;
};

/// How a rank of the bundled trainer begins its last words if no session reads them.
inline constexpr std::string_view kCausePrefix = "dtool-trainer: ";
using host::kFailurePrefix;

/// What a line of a log says about the whole run, without its line end; nothing for other lines.
std::optional<std::string_view> cause_in(std::string_view line);

/// For tasks that follow logs: the output is not kept, and an interrupt leaves the hosts at once.
ssh::RunOptions until_the_end();

/// What happens to logs with --json: they are kept for its document, or shown on standard error.
enum class LogsWithJson { keep, show };

/// The lines of the logs that are wanted.
struct LogSelection {
  std::optional<std::uint64_t> tail = {};  ///< this many lines of each log's end; nothing: all
  std::optional<std::chrono::seconds> since = {};  ///< so long ago
  std::vector<int> ranks = {};                     ///< empty: all lines
  std::optional<std::uint64_t> until = {};         ///< only what is before this byte of each log
  std::string pattern = {};  ///< POSIX extended regular expression; empty: all lines
};

/// Shows the machines' logs, or keeps them.
class LogOutput : public ssh::Events, protected LogLines {
 public:
  /// The remote's hosts are the run's machines in their order.
  LogOutput(Console& console, const killfiles::Killfile& run, Fold fold,
            const LogSelection& selection, LogsWithJson with_json = LogsWithJson::keep);

  /// Reads the logs of all machines. Each failed result has the reason that its host gave, if it
  /// gave one.
  std::vector<ssh::HostResult> read(ssh::Remote& remote);
  /// The same of the machines `which`.
  std::vector<ssh::HostResult> read(ssh::Remote& remote, const std::vector<std::size_t>& which);

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;

  /// Names the hosts that are not those of the run.
  void tell_strangers(const std::vector<ssh::HostResult>& results) const;
  /// The first message about why the whole run failed, or an empty text.
  const std::string& cause() const { return cause_; }
  /// Whether the user has seen it where messages about the work go.
  bool is_cause_shown() const;
  bool has_shown_lines() const { return has_shown_lines_; }
  /// The ranks whose lines the host's log has, as far as it said.
  const std::vector<std::int64_t>& ranks(std::size_t host) const {
    return streams_[host]->ranks().ranks;
  }
  /// The hosts' logs, if logs are kept.
  const LargeTexts& texts() const { return texts_; }

 protected:
  /// Takes bytes of a machine's log.
  virtual void take(std::size_t host, std::string_view bytes);
  void show(const std::vector<std::size_t>& machines, std::string_view line) override;
  std::string_view shared_part(std::size_t machine, std::string_view line) const override;
  /// The first request to a machine.
  virtual host::LogRequest request(std::size_t host) const;
  ssh::Task task(std::size_t host, const host::LogRequest& request) const;
  /// Called once a second while a log is followed.
  virtual void on_sign_of_life(std::size_t /*host*/) {}
  /// Takes note of what a line says about the whole run.
  void hear(std::string_view line);
  /// Whether the run's supervision has said that the run failed.
  bool has_run_failed() const { return has_run_failed_; }
  void write_out();
  const std::string& name(std::size_t host) const { return names_[host]; }
  const LogStream& stream(std::size_t host) const { return *streams_[host]; }
  LogStream& stream(std::size_t host) { return *streams_[host]; }

  Console& console_;

 private:
  class Stream;
  void explain(std::size_t host, ssh::HostResult& result) const;
  std::string complaint(std::size_t host) const;
  std::string styled(Style style, std::string_view text) const;
  To to() const { return console_.json() ? To::err : To::out; }
  std::string label(const std::vector<std::size_t>& machines) const;
  const std::string& label_of_rank(std::size_t machine, int rank);

  const killfiles::Killfile& run_;
  Fold fold_;
  LogSelection selection_;
  LogsWithJson with_json_;
  std::string scheduler_;  ///< its title, if a scheduler runs the job
  std::vector<std::unique_ptr<LogStream>> streams_;
  std::vector<std::string> names_;
  std::vector<std::string> labels_;  ///< one per machine, coloured
  std::vector<std::map<int, std::string>> rank_labels_;
  LargeTexts texts_;
  std::vector<std::string> complaints_;
  std::string cause_;
  bool has_run_failed_ = false;
  bool has_shown_lines_ = false;
  std::string shown_;  ///< not yet written
};

}  // namespace dtool::cli
