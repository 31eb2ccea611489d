#include "cli/logs/log_follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/scripts.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"

namespace dtool::cli {
namespace {

/// Pauses of 0.5 s doubling to 10 s: with the time that connecting takes, a host may be away for a
/// minute and a half at least.
constexpr int kMostTries = 12;
constexpr auto kFirstPause = std::chrono::milliseconds(500);
constexpr auto kLongestPause = std::chrono::milliseconds(10'000);

bool may_come_back(const ssh::HostResult& result) {
  return result.failure == ssh::Failure::connection_lost ||
         result.failure == ssh::Failure::unreachable ||
         result.failure == ssh::Failure::connect_timed_out;
}

}  // namespace

FollowedLogs::FollowedLogs(Console& console, const killfiles::Killfile& run, Fold fold,
                           std::optional<std::uint64_t> tail, LogsWithJson with_json)
    : LogOutput(console, run, fold, with_json),
      run_(run),
      tail_(tail),
      was_reached_(run.machines.size()),
      tries_(run.machines.size()) {
  for (std::size_t host = 0; host < run.machines.size(); ++host)
    streams_.push_back(std::make_unique<Stream>(*this, host));
}

ssh::Task FollowedLogs::task(std::size_t host, const std::string& lines) const {
  const LogStream& stream = *streams_[host];
  std::string text(ssh::answer_function());
  text += fmt::format("state={}\nunique={}\nlines={}\noffset={}\nlast={}\n",
                      ssh::quote_path(run_.machines[host].state_folder), stream.unique(), lines,
                      stream.offset(), stream.last_in_hex());
  return {host, ssh::bash(text.append(scripts::kResume)
                              .append(ssh::scripts::kIdentify)
                              .append(ssh::scripts::kFollow))};
}

std::vector<ssh::Task> FollowedLogs::tasks() const {
  std::vector<ssh::Task> tasks;
  for (std::size_t host = 0; host < streams_.size(); ++host)
    tasks.push_back(task(host, tail_ ? std::to_string(*tail_) : ""));
  return tasks;
}

void FollowedLogs::Stream::on_bytes(std::string_view bytes) {
  logs_.LogOutput::on_output(host_, ssh::Stream::out, bytes);
}

void FollowedLogs::Stream::on_break(std::string_view what) {
  logs_.break_line(host_);
  logs_.write_out();
  const std::string text = what == "rotated" ? "the log was rotated: its successor follows"
                           : what == "lost"
                               ? "the log was truncated or rotated while the connection was lost: "
                                 "it follows from its beginning"
                               : fmt::format("{}: it follows from its beginning", what);
  logs_.console_.note(fmt::format("{}: {}", logs_.name(host_), text));
}

void FollowedLogs::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  if (stream == ssh::Stream::err) {
    if (bytes.find_first_not_of('\n') != bytes.npos) LogOutput::on_output(host, stream, bytes);
    show_due(host);  // follow.sh writes a line end a second there
    write_out();
    return;
  }
  streams_[host]->add(bytes);
  if (!streams_[host]->has_begun()) return;
  if (tries_[host] > 0) console_.note(fmt::format("{}: connected again", name(host)));
  was_reached_[host] = true;
  tries_[host] = 0;
}

std::optional<ssh::NextTask> FollowedLogs::next_task(std::size_t host,
                                                     const ssh::HostResult& result) {
  if (is_interrupted_ || !was_reached_[host] || !may_come_back(result) ||
      tries_[host] == kMostTries)
    return std::nullopt;
  if (tries_[host] == 0)
    console_.note(fmt::format("{}: {}; trying again", name(host), result.error));
  const auto pause = std::min(kLongestPause, kFirstPause * (1 << std::min(tries_[host], 8)));
  ++tries_[host];
  const ssh::Task next = task(host, "");
  streams_[host]->begin_again();
  return ssh::NextTask{next, pause};
}

void FollowedLogs::on_result(std::size_t host, const ssh::HostResult& result) {
  streams_[host]->end();
  LogOutput::on_result(host, result);
  ++ended_;
  console_.progress(ended_ < streams_.size()
                        ? fmt::format("ended: {} of {} machines", ended_, streams_.size())
                        : std::string());
}

void FollowedLogs::on_interrupt(const std::vector<std::size_t>&) {
  is_interrupted_ = true;
  console_.note("interrupted: the run goes on by itself");
}

}  // namespace dtool::cli
