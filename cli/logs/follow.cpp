// SPDX-License-Identifier: MIT
#include "cli/logs/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <utility>

#include "cli/logs/log_output.h"
#include "ssh/remote.h"
#include "ssh/wire/run.h"

namespace dtool::cli {

namespace {

constexpr std::size_t kLastLines = 10;
constexpr std::size_t kLongestKept = 1 << 16;  ///< a longer one goes on as another line

/// Keeps the last lines of each host, and shows the very last ones: of those that still run on a
/// terminal, and of each that has ended well for good.
class LastLines : public FollowedLogs {
 public:
  LastLines(Console& console, const std::vector<ssh::Host>& hosts, const killfiles::Killfile& jobs,
            const std::vector<std::size_t>& which)
      : FollowedLogs(console, jobs, Fold::no, {}),
        hosts_(hosts),
        which_(which),
        machines_(hosts.size()) {}

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    machines_[host].has_ended = true;
    if (result.ok()) console_.note(last_line(host));
    show_rows();
  }

  void on_interrupt(const std::vector<std::size_t>&) override {
    is_interrupted_ = true;
    console_.note("interrupted: the jobs go on by themselves");
  }

  std::string last_lines(std::size_t host) const {
    std::string text;
    for (const std::string& line : machines_[host].lines) text += "\n      " + line;
    return text;
  }

 private:
  struct Machine {
    std::deque<std::string> lines;
    bool line_is_open = false;
    bool has_ended = false;
  };

  void take(std::size_t host, std::string_view bytes) override {
    Machine& machine = machines_[host];
    for (const char each : bytes) {
      // A progress bar draws its line again after a carriage return.
      const bool is_end = each == '\n' || each == '\r';
      const bool begins = !machine.line_is_open || machine.lines.back().size() >= kLongestKept;
      machine.line_is_open = !is_end;
      if (is_end) continue;
      if (begins) machine.lines.emplace_back();
      machine.lines.back() += each;
      if (machine.lines.size() > kLastLines) machine.lines.pop_front();
    }
    show_rows();
  }

  std::string last_line(std::size_t host) const {
    const auto& lines = machines_[host].lines;
    return fmt::format("{}: {}", ssh::to_string(hosts_[host]), lines.empty() ? "" : lines.back());
  }

  void show_rows() {
    std::vector<std::string> rows;
    for (const std::size_t host : which_) {
      if (!machines_[host].has_ended) rows.push_back(last_line(host));
    }
    console_.live(rows);
  }

  const std::vector<ssh::Host>& hosts_;
  const std::vector<std::size_t>& which_;
  std::vector<Machine> machines_;
};

/// The trainer repeats its message about the whole run on every machine, word for word: it is shown
/// once. The supervision's comes last, from the caller.
class RunLogs : public FollowedLogs {
 public:
  RunLogs(Console& console, const killfiles::Killfile& run)
      : FollowedLogs(console, run, Fold::no, {}, LogsWithJson::show) {}

 private:
  void show(const std::vector<std::size_t>& machines, std::string_view line) override {
    const std::string_view said = shared_part(machines.front(), line);
    if (said.starts_with(kFailurePrefix)) return hear(said);
    if (const auto cause = cause_in(said)) {
      const auto [at, is_new] = said_by_.try_emplace(std::string(*cause), machines.front());
      if (!is_new && at->second != machines.front()) {
        return hear(said);
      }
    }
    FollowedLogs::show(machines, line);
  }

  std::map<std::string, std::size_t> said_by_;
};

}  // namespace

std::vector<ssh::HostResult> follow_last_lines(Console& console, ssh::Remote& remote,
                                               const killfiles::Killfile& killfile,
                                               const std::vector<std::size_t>& which) {
  LastLines logs(console, remote.hosts(), killfile, which);
  std::vector<ssh::HostResult> results = logs.read(remote, which);
  console.live({});
  for (std::size_t i = 0; i < results.size(); ++i) {
    ssh::HostResult& result = results[i];
    if (result.failure == ssh::Failure::none && result.exit_code != 0 && result.error.empty())
      result.error = fmt::format("exit code {}; its last lines:{}", result.exit_code,
                                 logs.last_lines(which[i]));
  }
  return results;
}

FollowedRun follow_logs(Console& console, ssh::Remote& remote,
                        const killfiles::Killfile& killfile) {
  RunLogs logs(console, killfile);
  std::vector<ssh::HostResult> results = logs.read(remote);
  return {std::move(results), logs.cause()};
}

namespace {

/// Pauses of 0.5 s doubling to 10 s: with the time that connecting takes, a host may be away for a
/// minute and a half at least.
constexpr int kMostTries = 12;
/// Once a run has failed, a host that is away has little more to say.
constexpr int kMostTriesAfterFailure = 1;
constexpr auto kFirstPause = std::chrono::milliseconds(500);
constexpr auto kLongestPause = std::chrono::milliseconds(10'000);

bool may_come_back(const ssh::HostResult& result) {
  return result.failure == ssh::Failure::connection_lost ||
         result.failure == ssh::Failure::unreachable ||
         result.failure == ssh::Failure::connect_timed_out;
}

/// The process that answers was killed there: nothing says that the log is over.
bool was_cut_off(const ssh::HostResult& result, const LogStream& stream) {
  return result.failure == ssh::Failure::none && result.exit_code != 0 && !stream.log_end() &&
         stream.fault().empty();
}

}  // namespace

FollowedLogs::FollowedLogs(Console& console, const killfiles::Killfile& run, Fold fold,
                           const LogSelection& selection, LogsWithJson with_json)
    : LogOutput(console, run, fold, selection, with_json),
      was_reached_(run.machines.size()),
      tries_(run.machines.size()) {}

host::LogRequest FollowedLogs::request(std::size_t host) const {
  host::LogRequest request = LogOutput::request(host);
  request.is_followed = true;
  return request;
}

void FollowedLogs::on_sign_of_life(std::size_t host) {
  show_due(host);
  show_redrawn(host);
  write_out();
}

void FollowedLogs::on_output(std::size_t host, ssh::Stream stream_of, std::string_view bytes) {
  LogOutput::on_output(host, stream_of, bytes);
  if (!stream(host).has_begun()) return;
  if (tries_[host] > 0) console_.note(fmt::format("{}: connected again", name(host)));
  was_reached_[host] = true;
  tries_[host] = 0;
}

std::optional<ssh::NextTask> FollowedLogs::next_task(std::size_t host,
                                                     const ssh::HostResult& result) {
  const int most_tries = has_run_failed() ? kMostTriesAfterFailure : kMostTries;
  const bool is_cut_off = was_cut_off(result, stream(host));
  if (is_interrupted_ || !was_reached_[host] || !(may_come_back(result) || is_cut_off) ||
      tries_[host] >= most_tries)
    return std::nullopt;
  if (tries_[host] == 0)
    console_.note(fmt::format("{}: {}; trying again (Ctrl-C ends this, not the run)", name(host),
                              is_cut_off ? "the answer ended early" : result.error));
  const auto pause = std::min(kLongestPause, kFirstPause * (1 << std::min(tries_[host], 8)));
  ++tries_[host];
  host::LogRequest again = request(host);
  again.lines.reset();
  again.since_s.reset();
  again.offset = stream(host).offset();
  again.before = {stream(host).last()};
  stream(host).begin_again();
  return ssh::NextTask{task(host, again), pause};
}

void FollowedLogs::on_result(std::size_t host, const ssh::HostResult& result) {
  LogOutput::on_result(host, result);
  ++ended_;
  console_.progress(ended_ < was_reached_.size()
                        ? fmt::format("ended: {} of {} machines", ended_, was_reached_.size())
                        : std::string());
}

void FollowedLogs::on_interrupt(const std::vector<std::size_t>&) {
  is_interrupted_ = true;
  console_.note("interrupted: the run goes on by itself");
}

}  // namespace dtool::cli
