// SPDX-License-Identifier: MIT
#include "ssh/host/session/scheduled_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/members.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr int kToFollow = 5;
constexpr int kToTell = 2;

/// Seconds since that time of the host's clock: `2026-11-23T12:00:00`.
std::optional<std::int64_t> seconds_since(const std::string& text) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  parts.tm_isdst = -1;
  return ::time(nullptr) - ::mktime(&parts);
}

bool is_open(const std::string& state) {
  return state == "pending" || state == "running" || state == "unknown";
}

}  // namespace

bool has_probe(const std::string& state) {
  return exists(state + "/probe");
}

ScheduledJob::ScheduledJob(std::string state)
    : state_(std::move(state)), run_(folder_of(state_)), told_(run_ + "/told") {
  const std::string leader = run_ + "/machine0";
  int nodes = 1;
  for (const auto& [name, value] : read_pairs(read_file(leader + "/scheduler").value_or(""))) {
    if (name == "title") title_ = value;
    if (name == "nodes") nodes = std::max(1, parse_number<int>(value).value_or(1));
  }
  has_steps_ = exists(leader + "/allocation");
  job_ = read_line(leader + (has_steps_ ? "/allocation" : "/job"));
  const std::string name = state_.substr(run_.size());
  const auto machine = parse_number<int>(name.substr(std::min(name.size(), sizeof "/machine" - 1)));
  const int task = has_steps_ ? 0 : machine.value_or(0) / nodes;
  task_ = std::to_string(task);
  first_ = run_ + "/machine" + std::to_string(task * nodes);
}

/// If several processes look at once, one of them asks the scheduler, and the others read its
/// answer. The scheduler forgets a job some time after its end, but the last answer stays in the
/// file.
void ScheduledJob::ask(int age) const {
  const std::string fault = told_ + ".fault";
  for (const std::string& file : {told_, fault}) {
    if (age_of(file).value_or(age) < age) return;
  }
  Descriptor lock = lock_file(told_ + ".lock", 0);
  if (!lock.is_open()) {
    if (!exists(told_)) lock = lock_file(told_ + ".lock", 60'000);
    return;
  }
  const ChildResult said =
      run_program({"bash", "-c", ". ./probe; ask_job \"$1\" 2>&1", "dtool", job_}, 60s, state_);
  if (!said.ok()) {
    const std::string why =
        said.timed_out ? "its commands do not answer" : as_line(said.out + said.err);
    write_in_place(fault, why + "\n");
    return;
  }
  if (said.out.empty()) {
    write_in_place(told_ + ".gone", "");
    append_to(told_, "");
    ::utimensat(AT_FDCWD, told_.c_str(), nullptr, 0);
  } else if (write_in_place(told_ + ".new", said.out)) {
    ::rename((told_ + ".new").c_str(), told_.c_str());
  }
  ::unlink(fault.c_str());
}

ScheduledJob::Word ScheduledJob::look(int age) const {
  Word word;
  if (has_steps_) {
    const auto leader = read_job_files(first_).leader;
    if (!leader) return word;
    word.is_of_kernel = leader->boot != Boot::earlier;
    if (word.is_of_kernel) {
      const auto process = find_leader(*leader);
      if (process && process->state != 'Z') word.state = "running";
      return word;
    }
  }
  if (job_.empty()) return word;
  ask(age);
  word.state.clear();
  const std::string told = read_file(told_).value_or("");
  bool is_exact = false;
  for (std::string_view rest = told; !rest.empty();) {
    std::string_view line = cut_line(rest);
    const std::string_view task = cut_word(line);
    if (task != task_ && (task != "*" || is_exact)) continue;
    is_exact = task == task_;
    word.state = cut_word(line);
    word.start = cut_word(line);
    word.end = cut_word(line);
    word.reason = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  }
  if (word.state.empty() || word.state == "pending" || word.state == "running") {
    if (exists(told_ + ".fault")) {
      word.state = "unknown";
    } else if (exists(told_ + ".gone")) {
      word.state = "lost";  // it ended, and the scheduler forgot it before it was asked
    }
  }
  if (word.state.empty()) word.state = "unknown";
  return word;
}

bool ScheduledJob::runs() {
  // kill takes the folder away, and with it the scheduler's answers.
  if (!exists(run_ + "/machine0")) return false;
  if (exists(has_steps_ ? state_ + "/exit_code" : first_ + "/over")) return false;
  return is_open(look(kToFollow).state);
}

std::string ScheduledJob::became() {
  if (!exists(run_ + "/machine0")) return "killed";
  if (has_steps_) return {};
  const Word word = look(kToTell);
  if (word.reason.starts_with("JobLaunchFailure")) return "launch_failed";
  const bool is_plain = word.state == "completed" || word.state == "failed" || word.state == "lost";
  return is_plain ? "" : word.state;
}

void ScheduledJob::tell(StatusAnswer& answer) {
  if (has_steps_ && !exists(first_ + "/process")) return;  // not started
  const bool is_over = exists(has_steps_ ? state_ + "/exit_code" : first_ + "/over");
  answer.scheduler = title_;
  answer.job = job_;
  answer.scheduler_state = "over";
  if (is_over && !has_steps_) return;
  // The machine may have begun since the scheduler was asked.
  const Word word = look(is_newer(state_ + "/node", told_) ? 0 : kToTell);
  if (word.is_of_kernel && word.state == "lost") answer.job.clear();
  if (is_over) return;
  answer.scheduler_state = word.state;
  answer.reason =
      word.state == "unknown" ? as_line(read_file(told_ + ".fault").value_or("")) : word.reason;
  if (word.state == "running") {
    answer.reason.clear();
    const auto age = has_steps_ ? age_of(first_ + "/process") : seconds_since(word.start);
    if (!exists(state_ + "/exit_code")) answer.up_s = age.value_or(0);
  } else if (!is_open(word.state)) {
    answer.ended_s_ago = seconds_since(word.end);
  }
}

int await_job(const std::string& state) {
  ScheduledJob job(state);
  while (job.runs()) pause(200ms);
  write_all(STDOUT_FILENO, job.became() + "\n");
  return 0;
}

}  // namespace dtool::host
