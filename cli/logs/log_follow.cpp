// SPDX-License-Identifier: MIT
#include "cli/logs/log_follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ssh/wire/log.h"

namespace dtool::cli {
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
