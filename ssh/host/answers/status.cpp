// SPDX-License-Identifier: MIT
// How machines of recorded runs are doing on this host.
#include "ssh/host/answers/answers.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "ssh/host/child.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/host/members.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/log_tail.h"
#include "ssh/host/session/scheduled_job.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::chrono::milliseconds kToMeasure{300};  // the time between two looks at the CPU time
constexpr std::size_t kLongestText = 8192;  // the most bytes of a file that holds a sentence

/// A small file as one line of text.
std::string text_of(const std::string& path) {
  return as_line(read_file(path, kLongestText).value_or(""));
}

/// CPU time and memory of a run's processes.
struct Use {
  std::int64_t processes = 0;
  std::uint64_t ticks = 0;
  std::uint64_t pages = 0;
  double at = 0;  ///< seconds since the boot
};

RunTraces traces_of(const StatusQuestion& question) {
  RunTraces traces{question.run_id, {}, {}, {}};
  const JobFiles job = read_job_files(expand_home(question.state_folder));
  if (job.leader) add_leader(*job.leader, traces);
  return traces;
}

std::vector<Use> measure(std::vector<MemberFinder>& finders) {
  const Sight sight = look_around();
  std::vector<Use> uses;
  for (MemberFinder& each : finders) {
    Use use;
    use.at = seconds_since_boot();
    for (const Member& member : each.look(sight).living) {
      ++use.processes;
      use.ticks += member.cpu_ticks;
      use.pages += member.resident_pages;
    }
    uses.push_back(use);
  }
  return uses;
}

/// The processes that belong to the runs, by the one definition of what does. Those of a job that
/// has no session here are elsewhere.
void tell_processes(const StatusRequest& request, StatusReply& reply) {
  std::vector<MemberFinder> finders;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < request.machines.size(); ++i) {
    if (has_probe(expand_home(request.machines[i].state_folder))) continue;
    finders.emplace_back(traces_of(request.machines[i]));
    asked.push_back(i);
  }
  if (finders.empty()) return;
  const std::vector<Use> before = measure(finders);
  std::vector<Use> now = before;
  bool is_any = false;
  for (const Use& each : before) is_any = is_any || each.processes != 0;
  if (is_any) {
    pause(kToMeasure);
    now = measure(finders);
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    StatusAnswer& answer = reply.machines[asked[i]];
    answer.processes = now[i].processes;
    if (now[i].processes == 0) continue;
    answer.memory_bytes = static_cast<std::int64_t>(now[i].pages * page);
    // A process that ended meanwhile takes its time with it.
    if (now[i].ticks < before[i].ticks || now[i].at <= before[i].at) continue;
    const double used = static_cast<double>(now[i].ticks - before[i].ticks) /
                        static_cast<double>(ticks_per_second());
    answer.cpu_percent = static_cast<std::int64_t>(used * 100 / (now[i].at - before[i].at));
  }
}

/// The state of the session's leader; `process`: the leader, if it lives.
void tell_leader(const std::string& state, const Leader& leader,
                 const std::optional<Process>& process, StatusAnswer& answer) {
  answer.pid = leader.pid;
  answer.was_rebooted = leader.boot == Boot::earlier;
  // The session may outlast its script, to supervise others'.
  if (!process || exists(state + "/exit_code")) return;
  const double started =
      static_cast<double>(process->start) / static_cast<double>(ticks_per_second());
  answer.up_s = static_cast<std::int64_t>(seconds_since_boot() - started);
}

/// The program that holds the terminal of a session whose leader lives. A session may outlive its
/// screen.
std::string terminal_of(const JobFiles& job, const Process& leader) {
  if (job.holder == "tmux" || job.holder == "none") return job.holder;
  const auto screen = find_process(leader.parent);
  return screen && screen->name.starts_with("screen") ? std::to_string(screen->pid) : "";
}

void tell_failed_attempt(const std::string& state, StatusAnswer& answer) {
  const auto text = read_file(state + "/" + kEarlierFailureFile, kLongestText);
  const auto failure = parse_earlier_failure(text.value_or(""));
  if (!failure) return;
  FailedAttempt& told = answer.failed_attempt.emplace();
  told.attempt = failure->attempt;
  told.log_bytes = failure->log_bytes;
  told.cause.text = as_line(failure->text);
  if (!failure->place) return;
  told.machine = failure->place->machine;
  told.rank = failure->place->rank;
}

void tell_state(const std::string& state, StatusAnswer& answer) {
  answer.lacks_run_folder = !state.empty() && !is_folder(folder_of(state));
  if (!is_folder(state)) return;
  const JobFiles job = read_job_files(state);
  std::optional<Process> leader = job.leader ? find_leader(*job.leader) : std::nullopt;
  if (leader && leader->state == 'Z') leader.reset();
  if (has_probe(state)) {
    ScheduledJob(state).tell(answer);
  } else if (job.leader) {
    tell_leader(state, *job.leader, leader, answer);
  }
  if (leader) answer.terminal = terminal_of(job, *leader);
  answer.node = text_of(state + "/node");
  const std::string killed = state + "/killed";
  const std::string exit_code = state + "/exit_code";
  // kill leaves its mark on runs too that had ended before.
  answer.is_killed = exists(killed) && !(exists(exit_code) && is_newer(killed, exit_code));
  answer.is_stopped = exists(state + "/stopped");
  answer.attempt = parse_number<std::int64_t>(text_of(state + "/attempt")).value_or(0);
  answer.supervision = text_of(state + "/supervision");
  answer.cause.text = text_of(state + "/cause");
  if (const auto place = parse_cause_place(text_of(state + "/" + kCausePlaceFile))) {
    answer.cause_machine = place->machine;
    answer.cause_rank = place->rank;
  }
  tell_failed_attempt(state, answer);
  answer.failed_rank = parse_number<int>(text_of(state + "/first_failure"));
  if (exists(exit_code)) {
    answer.exit_code = parse_number<std::int64_t>(text_of(exit_code));
    if (!answer.ended_s_ago) answer.ended_s_ago = age_of(exit_code);
  } else if (exists(killed) && !answer.ended_s_ago) {
    answer.ended_s_ago = age_of(killed);
  }
}

void tell_metrics(const std::string& output, StatusAnswer& answer) {
  const std::string metrics = output + "/metrics.jsonl";
  if (output.empty() || !exists(metrics)) return;
  if (!answer.up_s)
    answer.simulator.text = read_file(output + "/environment.json", 256U << 10U).value_or("");
  answer.metrics = {newest_event(metrics, {"step", "epoch", ""})};
  // A run that follows another one's checkpoints validates into a file of its own.
  const std::string apart = output + "/validation.jsonl";
  const bool is_apart = !read_end(apart, 1).empty();
  answer.validation = {newest_event(is_apart ? apart : metrics, {"validation"})};
  if (!answer.metrics.text.empty() || !answer.validation.text.empty())
    answer.metrics_s_ago = age_of(metrics);
}

std::vector<std::string> look_at_gpus() {
  const ChildResult told =
      try_program({"nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used,memory.total",
                   "--format=csv,noheader,nounits"},
                  std::chrono::seconds(5));
  std::vector<std::string> gpus;
  if (!told.ok()) return gpus;
  for (std::string_view rest = told.out; !rest.empty();) gpus.emplace_back(cut_line(rest));
  return gpus;
}

/// The last lines of the rank that failed first, if this machine has the cause; else of the
/// machine, if it failed by itself.
std::vector<std::string> lines_of_failure(const std::string& state, const std::string& log,
                                          Marks marks, const StatusAnswer& answer) {
  const bool is_cause_here =
      answer.cause_machine && state.ends_with("/machine" + std::to_string(*answer.cause_machine));
  if (!is_cause_here && (answer.exit_code.value_or(0) == 0 || answer.is_stopped)) return {};
  const auto told = is_cause_here ? answer.cause_rank : answer.failed_rank;
  if (!told) return read_log_tail(log, marks).lines;
  const auto rank = static_cast<int>(*told);
  const std::string own = rank_log(state, static_cast<int>(answer.attempt), rank);
  if (!own.empty() && exists(own)) return read_log_tail(own).lines;
  std::vector<std::string> lines = read_log_tail(log, marks, rank).lines;
  if (marks == Marks::yes)
    for (std::string& line : lines) line = read_mark(line).text;
  return lines;
}

/// A rank that never writes says nothing by its silence.
void tell_silence(const std::string& state, const std::string& log, StatusAnswer& answer) {
  constexpr std::int64_t kSilent = 60;
  answer.output_s_ago = age_of(log);
  for (const int rank : read_log_ranks(state).ranks) {
    const std::string own = rank_log(state, static_cast<int>(answer.attempt), rank);
    const std::string& file = own.empty() || !exists(own) ? log : own;
    const auto age = age_of(file);
    if (age && *age >= kSilent && !read_end(file, 1).empty()) answer.silent.push_back({rank, *age});
  }
}

void tell_output(const StatusQuestion& question, StatusAnswer& answer) {
  const std::string log = expand_home(question.log);
  const std::string state = expand_home(question.state_folder);
  const Marks marks = read_log_ranks(state).are_marked ? Marks::yes : Marks::no;
  const LogTail end = read_log_tail(log, marks);
  const bool has_failed = answer.exit_code.value_or(0) != 0 && !answer.is_stopped;
  answer.said = {end.said};
  answer.last_line = {has_failed ? end.explanation : end.last};
  for (const std::string& line : lines_of_failure(state, log, marks, answer))
    answer.lines.push_back({line});
  if (answer.up_s) tell_silence(state, log, answer);
  tell_metrics(expand_home(question.output_folder), answer);
  if (!answer.up_s && answer.pid) {
    constexpr std::size_t kMostPackages = 256U << 10U;
    const auto packages = read_file(state + "/environment.txt");
    answer.packages.text = packages.value_or("").substr(0, kMostPackages);
  }
  answer.full_disk = find_full_disk({log, state});
}

}  // namespace

StatusReply tell_status(const StatusRequest& request) {
  StatusReply reply;
  reply.host = identify_host();
  reply.machines.resize(request.machines.size());
  if (!request.is_brief) tell_processes(request, reply);
  for (std::size_t i = 0; i < request.machines.size(); ++i) {
    const StatusQuestion& question = request.machines[i];
    tell_state(expand_home(question.state_folder), reply.machines[i]);
    if (!request.is_brief) tell_output(question, reply.machines[i]);
  }
  if (request.is_brief || request.machines.empty()) return reply;
  const std::vector<std::string> gpus = look_at_gpus();
  for (StatusAnswer& each : reply.machines) each.gpus = gpus;
  return reply;
}

}  // namespace dtool::host
