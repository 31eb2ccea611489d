// SPDX-License-Identifier: MIT
#include "cli/logs/log_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/engines/engine.h"
#include "cli/host_output.h"
#include "cli/record/recorded.h"
#include "cli/watch/run_status.h"
#include "ssh/host.h"
#include "ssh/host/rank_log.h"
#include "ssh/remote.h"
#include "ssh/wire/run.h"

namespace dtool::cli {

namespace {

/// Red is for failures, and dim is hard to read.
constexpr std::array kMachineColors = {Style::blue, Style::green, Style::yellow, Style::magenta,
                                       Style::cyan};
constexpr std::size_t kMostComplaint = 4096;
constexpr std::size_t kMostAtOnce = 1 << 16;

}  // namespace

std::optional<std::string_view> cause_in(std::string_view line) {
  while (line.ends_with('\n')) line.remove_suffix(1);
  for (const std::string_view prefix : {kCausePrefix, kFailurePrefix}) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return std::nullopt;
}

/// One machine's log on its way to the console.
class LogOutput::Stream : public LogStream {
 public:
  Stream(LogOutput& logs, std::size_t host) : logs_(logs), host_(host) {}

 private:
  void on_bytes(std::string_view bytes) override { logs_.take(host_, bytes); }
  void on_break(Break what) override;
  void on_sign_of_life() override { logs_.on_sign_of_life(host_); }

  LogOutput& logs_;
  std::size_t host_;
};

void LogOutput::Stream::on_break(Break what) {
  logs_.break_line(host_);
  logs_.write_out();
  const std::string text =
      what == Break::rotated ? "the log was rotated: its successor follows"
      : what == Break::lost
          ? "the log was truncated or rotated while the connection was lost: it follows from its "
            "beginning"
          : "the log was truncated: it follows from its beginning";
  logs_.console_.note(fmt::format("{}: {}", logs_.name(host_), text));
}

LogOutput::LogOutput(Console& console, const killfiles::Killfile& run, Fold fold,
                     const LogSelection& selection, LogsWithJson with_json)
    : LogLines(run.machines.size(), fold),
      console_(console),
      run_(run),
      fold_(fold),
      selection_(selection),
      with_json_(with_json),
      scheduler_(engine_title(run.engine)),
      rank_labels_(run.machines.size()),
      texts_(run.machines.size()),
      complaints_(run.machines.size()) {
  for (const killfiles::Machine& machine : run.machines) {
    streams_.push_back(std::make_unique<Stream>(*this, streams_.size()));
    names_.push_back(fmt::format("machine{}", machine.id));
    const Style color =
        kMachineColors[static_cast<std::size_t>(machine.id) % kMachineColors.size()];
    labels_.push_back(styled(color, names_.back() + ":") + " ");
  }
}

host::LogRequest LogOutput::request(std::size_t host) const {
  host::LogRequest request;
  request.state_folder = run_.machines[host].state_folder;
  request.log = run_.machines[host].log;
  request.lines = selection_.tail;
  if (selection_.since) request.since_s = selection_.since->count();
  request.until = selection_.until;
  request.ranks = {selection_.ranks.begin(), selection_.ranks.end()};
  request.pattern = {selection_.pattern};
  return request;
}

ssh::Task LogOutput::task(std::size_t host, const host::LogRequest& request) const {
  return {host, ssh::ask_host(request)};
}

ssh::RunOptions until_the_end() {
  ssh::RunOptions options;
  options.keep_output = ssh::KeepOutput::no;
  options.on_interrupt = ssh::OnInterrupt::leave;
  return options;
}

std::vector<ssh::HostResult> LogOutput::read(ssh::Remote& remote) {
  return read(remote, all_machines(run_));
}

std::vector<ssh::HostResult> LogOutput::read(ssh::Remote& remote,
                                             const std::vector<std::size_t>& which) {
  std::vector<ssh::Task> tasks;
  for (const std::size_t host : which) tasks.push_back(task(host, request(host)));
  std::vector<ssh::HostResult> results = remote.run(std::move(tasks), *this, until_the_end());
  flush();
  write_out();
  for (std::size_t i = 0; i < results.size(); ++i) {
    explain(which[i], results[i]);
    // Where several machines are reached through one host, its name says too little.
    const bool is_shared = std::ranges::count(results, results[i].host, &ssh::HostResult::host) > 1;
    const bool has_failed = results[i].failure == ssh::Failure::none && results[i].exit_code != 0;
    if (is_shared && has_failed && results[i].error.empty())
      results[i].error = fmt::format("{} ended with {}", names_[which[i]], describe(results[i]));
  }
  return results;
}

void LogOutput::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  if (stream == ssh::Stream::err) {
    std::string& complaint = complaints_[host];
    complaint += bytes.substr(0, kMostComplaint - std::min(complaint.size(), kMostComplaint));
    return;
  }
  streams_[host]->add(bytes);
}

void LogOutput::take(std::size_t host, std::string_view bytes) {
  if (console_.json() && with_json_ == LogsWithJson::keep) {
    texts_.add(host, bytes);
  } else {
    add(host, bytes);
    write_out();
  }
}

void LogOutput::on_result(std::size_t host, const ssh::HostResult& result) {
  if (result.ok()) {
    end(host);
  } else {
    leave_out(host);
  }
  write_out();
}

void LogOutput::explain(std::size_t host, ssh::HostResult& result) const {
  const bool is_well = result.exit_code == 0 && streams_[host]->fault().empty();
  if (result.failure != ssh::Failure::none || is_well) return;
  if (result.exit_code == 0) result.failure = ssh::Failure::connection_lost;
  result.error = complaint(host);
  const auto& end = streams_[host]->log_end();
  result.was_ended = end && end->state == "stopped";
}

void LogOutput::tell_strangers(const std::vector<ssh::HostResult>& results) const {
  for (std::size_t host = 0; host < results.size(); ++host) {
    const std::string text =
        stranger_at(run_.machines[host], streams_[host]->host(), results[host]);
    if (!text.empty()) console_.note(fmt::format("{}: {}", names_[host], text));
  }
}

std::string LogOutput::complaint(std::size_t host) const {
  if (!streams_[host]->fault().empty()) return streams_[host]->fault();
  if (const auto& end = streams_[host]->log_end()) {
    const std::string& state = end->state;
    return state.empty() || state == "exited" ? ""
           : state == "stopped"               ? "its processes were ended because the run failed"
           : state == "killed"                ? "it was killed"
           : state == "lost"                  ? "it ended without an exit code"
           : state == "unproven"
               ? "another host answers to this name than the one where it was started, and no end "
                 "is recorded: whether it still runs cannot be told"
           : state == "launch_failed"
               ? scheduler_ +
                     " could not begin it: do its nodes see ~/.dtool and the output folder?"
               : "the scheduler ended it: " + state;
  }
  std::string text = complaints_[host];
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string LogOutput::styled(Style style, std::string_view text) const {
  return console_.json() ? console_.styled_error(style, text) : console_.styled(style, text);
}

std::string LogOutput::label(const std::vector<std::size_t>& machines) const {
  if (machines.size() == 1) return labels_[machines.front()];
  std::vector<std::string> names;
  for (const std::size_t machine : machines) names.push_back(names_[machine]);
  return styled(Style::bold, ssh::fold(names) + ":") + " ";
}

const std::string& LogOutput::label_of_rank(std::size_t machine, int rank) {
  std::string& label = rank_labels_[machine][rank];
  if (label.empty()) {
    const auto id = static_cast<std::size_t>(run_.machines[machine].id);
    label = styled(kMachineColors[id % kMachineColors.size()],
                   fmt::format("{} r{}:", names_[machine], rank)) +
            " ";
  }
  return label;
}

std::string_view LogOutput::shared_part(std::size_t machine, std::string_view line) const {
  return streams_[machine]->ranks().are_marked ? host::read_mark(line).text : line;
}

bool LogOutput::is_cause_shown() const {
  const bool is_seen = to() == To::err || console_.has_one_place();
  return has_run_failed_ && has_shown_lines_ && is_seen;
}

void LogOutput::hear(std::string_view line) {
  const auto cause = cause_in(line);
  if (!cause) return;
  const bool is_verdict = line.starts_with(kFailurePrefix);
  if (cause_.empty() || is_verdict) cause_ = *cause;
  has_run_failed_ = has_run_failed_ || is_verdict;
}

void LogOutput::show(const std::vector<std::size_t>& machines, std::string_view line) {
  has_shown_lines_ = true;
  // With Fold::yes the marks are gone by now.
  const bool has_mark = fold_ == Fold::no && streams_[machines.front()]->ranks().are_marked;
  const host::MarkedLine marked =
      has_mark ? host::read_mark(line) : host::MarkedLine{std::nullopt, line};
  hear(marked.text);
  shown_ += marked.rank ? console_.as_passed_on(to(), label_of_rank(machines.front(), *marked.rank),
                                                marked.text)
                        : console_.as_passed_on(to(), label(machines), line);
  if (shown_.size() >= kMostAtOnce) write_out();
}

void LogOutput::write_out() {
  if (!shown_.empty()) console_.pass_on(to(), std::exchange(shown_, {}));
}

namespace {

constexpr std::size_t kFingerprint = 512;

}  // namespace

void LogStream::add(std::string_view bytes) {
  try {
    if (fault_.empty()) reader_.add(bytes);
    while (fault_.empty()) {
      const auto frame = reader_.next();
      if (!frame) break;
      take(*frame);
    }
  } catch (const host::BadMessage& error) {
    fault_ = fmt::format("what it sends is no log: {}", error.what());
  }
}

void LogStream::begin_again() {
  reader_ = {};
  fault_.clear();
  has_begun_ = false;
}

void LogStream::take(const host::Frame& frame) {
  switch (frame.kind) {
    case host::Kind::log_begin: {
      const auto begin = host::open<host::LogBegin>(frame);
      if (begin.is_lost) break_off(Break::lost);
      if (begin.offset != offset_) last_.clear();
      offset_ = begin.offset;
      host_ = begin.host;
      has_begun_ = true;
      break;
    }
    case host::Kind::log_bytes:
      pass_on(host::open<host::LogBytes>(frame).bytes.text);
      break;
    case host::Kind::selected_lines: {
      if (!has_begun_) break;
      const auto selected = host::open<host::SelectedLines>(frame);
      if (!selected.lines.text.empty()) on_bytes(selected.lines.text);
      offset_ = selected.offset;
      last_ = selected.before.text;
      break;
    }
    case host::Kind::ranks_of_log:
      ranks_ = host::open<host::RanksOfLog>(frame);
      break;
    case host::Kind::log_break:
      break_off(host::open<host::LogBreak>(frame).is_rotated ? Break::rotated : Break::truncated);
      break;
    case host::Kind::log_end:
      end_ = host::open<host::LogEnd>(frame);
      break;
    case host::Kind::fault:
      fault_ = host::as_error(host::open<host::Fault>(frame)).what();
      break;
    case host::Kind::still_here:
      on_sign_of_life();
      break;
    default:
      throw host::BadMessage("another message came in the middle of a log");
  }
}

void LogStream::break_off(Break what) {
  on_break(what);
  offset_ = 0;
  last_.clear();
}

void LogStream::pass_on(std::string_view bytes) {
  if (bytes.empty() || !has_begun_) return;
  offset_ += bytes.size();
  last_ += bytes.substr(bytes.size() - std::min(bytes.size(), kFingerprint));
  if (last_.size() > kFingerprint) last_.erase(0, last_.size() - kFingerprint);
  on_bytes(bytes);
}

}  // namespace dtool::cli
