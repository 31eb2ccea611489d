// SPDX-License-Identifier: MIT
#include "cli/watch/status_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/console.h"
#include "cli/host_output.h"
#include "ssh/remote.h"
#include "ssh/wire/run.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

using host::StatusAnswer;

/// `0, 97, 30123, 81559`; what a GPU does not tell is `[N/A]` there.
GpuUse read_gpu(std::string_view line) {
  std::array<std::optional<int>, 4> numbers;
  for (std::optional<int>& number : numbers) {
    const std::size_t comma = std::min(line.find(','), line.size());
    std::string_view field = line.substr(0, comma);
    field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
    number = host::parse_number<int>(field);
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return {numbers[0].value_or(0), numbers[1], numbers[2], numbers[3]};
}

/// Of a line that the bundled trainer did not write: what has no place of its own in the headline.
std::vector<std::pair<std::string, double>> other_numbers(const nlohmann::json& json) {
  constexpr std::array<std::string_view, 4> kShown = {"epoch", "step", "loss", "samples_per_s"};
  constexpr std::size_t kMost = 3;
  auto numbers = metric_numbers(json);
  std::erase_if(numbers, [&](const auto& each) {
    return each.first == "time" || std::isnan(each.second) || each.first == step_name(json) ||
           std::ranges::count(kShown, each.first) != 0;
  });
  numbers.resize(std::min(numbers.size(), kMost));
  return numbers;
}

std::optional<TrainingProgress> read_progress(const StatusAnswer& answer) {
  TrainingProgress progress;
  bool is_told = false;
  // A run that only validates has no lines of training.
  for (const std::string& line : {answer.validation.text, answer.metrics.text}) {
    if (line.empty()) continue;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    is_told = true;
    const auto take = [&json](const char* name, auto& number) {
      const auto found = json.find(name);
      if (found != json.end() && found->is_number()) found->get_to(number.emplace());
    };
    std::optional<std::int64_t> epoch, step;
    take("epoch", epoch);
    take(step_name(json).c_str(), step);
    progress.epoch = epoch.value_or(0);
    progress.step = step.value_or(0);
    take("loss", progress.loss);
    take("samples_per_s", progress.samples_per_s);
    take("train_success", progress.train_success);
    take("validation_success", progress.validation_success);
    if (!json.contains("event")) progress.others = other_numbers(json);
  }
  if (!is_told) return std::nullopt;
  progress.age_s = answer.metrics_s_ago.value_or(0);
  return progress;
}

/// A machine's or a rank's.
std::optional<int> number_in_run(std::optional<std::int64_t> number) {
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

EarlierFailure read_earlier(const host::FailedAttempt& told, int teller) {
  return {number_in_run(told.attempt).value_or(0), told.log_bytes,
          number_in_run(told.machine).value_or(teller), number_in_run(told.rank),
          without_controls(told.cause.text)};
}

/// Where the host has told an exit code.
std::optional<MachineState> ended_state(MachineStatus& status, const StatusAnswer& answer) {
  const auto code = answer.exit_code;
  if (!code || *code < 0 || *code > 255) return std::nullopt;
  status.exit_code = static_cast<int>(*code);
  return answer.is_stopped ? MachineState::stopped : MachineState::exited;
}

MachineState judge(MachineStatus& status, const StatusAnswer& answer) {
  if (!answer.scheduler_state.empty()) {
    if (answer.is_killed && answer.scheduler_state != "running") return MachineState::killed;
    if (const auto ended = ended_state(status, answer)) return *ended;
    return scheduled_state(answer.scheduler_state).value_or(MachineState::lost);
  }
  const bool was_started = answer.pid.has_value();
  if (was_started && answer.up_s) return MachineState::running;
  if (answer.is_killed) return MachineState::killed;
  if (!was_started) return MachineState::not_started;
  return ended_state(status, answer).value_or(MachineState::lost);
}

/// A state that is only concluded from something missing is unproven if another host answers than
/// the recorded one, or if the run's folder is missing. A scheduler's word, or the machine's own
/// record of its end, is valid wherever it is read.
void doubt(const killfiles::Machine& machine, const StatusAnswer& answer, const std::string& host,
           const std::string& host_key, MachineStatus& status) {
  const bool is_guessed = status.state == MachineState::lost ||
                          status.state == MachineState::not_started ||
                          (status.state == MachineState::killed && !answer.exit_code);
  if (!is_guessed || !answer.scheduler_state.empty()) return;
  status.recorded_host = machine.identity;
  status.found_host = killfiles::parse_identity(host).value_or(killfiles::HostIdentity());
  if (status.found_host.is_known()) status.found_host.host_key = host_key;
  const auto likeness = compare(status.recorded_host, status.found_host);
  if (likeness == killfiles::Likeness::another) {
    status.state = MachineState::unproven;
    status.reason = "another host";
    status.error = fmt::format("another host answers to this name, {}; it was started on {}",
                               describe(status.found_host), describe(status.recorded_host));
    status.hint = fmt::format("lead the name to {} (HostName in the SSH configuration)",
                              status.recorded_host.name);
  } else if (answer.lacks_run_folder && likeness != killfiles::Likeness::rebooted) {
    const std::int64_t left = answer.processes;
    status.state = MachineState::unproven;
    status.reason = "no folder";
    status.error = "the run's folder is gone; ";
    status.error +=
        left == 0 ? "what was started cannot be known"
                  : fmt::format("{} of its processes {} left", left, left == 1 ? "is" : "are");
    status.hint = "has the home folder changed since then?";
  }
}

/// A host that did not answer, or whose answer cannot be read: `why`.
MachineStatus unreachable(const killfiles::Machine& machine, const ssh::HostResult& result,
                          const std::string& why) {
  MachineStatus status;
  status.id = machine.id;
  status.host = result.host;
  status.error = without_controls(why);
  status.hint = result.hint;
  return status;
}

/// Interprets one machine's part of the answer.
MachineStatus read_status(const killfiles::Machine& machine, const StatusAnswer& answer,
                          const std::string& host, const ssh::HostResult& result) {
  MachineStatus status;
  status.id = machine.id;
  status.host = result.host;
  status.pid = answer.pid;
  status.up_s = answer.up_s;
  status.node = without_controls(answer.node);
  status.job = without_controls(answer.job);
  if (!answer.scheduler.empty()) status.scheduler = without_controls(answer.scheduler);
  status.reason = without_controls(answer.reason);
  if (status.reason == "None") status.reason.clear();  // Slurm's word for it
  status.state = judge(status, answer);
  doubt(machine, answer, host, result.host_key, status);
  if (status.state == MachineState::unreachable)
    status.error = fmt::format("its scheduler does not answer: {}", status.reason);
  status.was_rebooted = status.state == MachineState::lost && answer.was_rebooted;
  status.ended_s_ago = status.up_s ? std::nullopt : answer.ended_s_ago;
  status.processes = static_cast<int>(answer.processes);
  if (answer.cpu_percent) status.cpu_percent = static_cast<int>(*answer.cpu_percent);
  status.memory_bytes = answer.memory_bytes;
  for (const std::string& line : answer.gpus) status.gpus.push_back(read_gpu(line));
  status.last_line = without_controls(answer.last_line.text);
  status.cause = without_controls(answer.cause.text);
  status.cause_machine = number_in_run(answer.cause_machine);
  status.cause_rank = number_in_run(answer.cause_rank);
  status.failed_rank = number_in_run(answer.failed_rank);
  if (answer.failed_attempt)
    status.earlier_failure = read_earlier(*answer.failed_attempt, status.id);
  status.full_disk = without_controls(answer.full_disk);
  status.said = without_controls(answer.said.text);
  status.supervision = without_controls(answer.supervision);
  status.attempt = static_cast<int>(answer.attempt);
  for (const host::Hidden& line : answer.lines)
    status.last_lines.push_back(without_controls(line.text));
  status.output_s_ago = answer.output_s_ago;
  for (const host::RankAge& each : answer.silent)
    if (const auto rank = number_in_run(each.rank)) status.silent_s.emplace_back(*rank, each.s_ago);
  status.progress = read_progress(answer);
  status.metrics = answer.metrics.text;
  status.validation = answer.validation.text;
  status.packages = answer.packages.text;
  status.simulator = answer.simulator.text;
  return status;
}

}  // namespace

ssh::Command status_command(const std::vector<AskedMachine>& machines, Detail detail) {
  host::StatusRequest request;
  request.is_brief = detail == Detail::brief;
  for (const auto& [run_id, machine] : machines)
    request.machines.push_back({run_id, machine.state_folder, machine.log, machine.output_folder});
  return ssh::ask_host(request);
}

std::vector<MachineStatus> read_statuses(const std::vector<AskedMachine>& machines,
                                         const ssh::HostResult& result) {
  std::vector<MachineStatus> statuses;
  if (result.failure != ssh::Failure::none) {
    for (const AskedMachine& each : machines)
      statuses.push_back(unreachable(each.machine, result, describe(result)));
    return statuses;
  }
  try {
    const auto reply = ssh::read_reply<host::StatusReply>(result);
    if (reply.machines.size() != machines.size())
      throw host::BadMessage("the answer is about another number of machines");
    for (std::size_t i = 0; i < machines.size(); ++i)
      statuses.push_back(read_status(machines[i].machine, reply.machines[i], reply.host, result));
  } catch (const host::BadMessage& error) {
    statuses.clear();
    for (const AskedMachine& each : machines)
      statuses.push_back(unreachable(each.machine, result,
                                     fmt::format("it did not say how it is: {}", error.what())));
  }
  return statuses;
}

namespace {

std::string name_of(const MachineStatus& status) {
  return fmt::format("machine {} ({})", status.id, place_of(status));
}

std::string describe_failure(const MachineStatus& status) {
  switch (status.state) {
    case MachineState::exited: {
      ssh::HostResult result;
      result.exit_code = status.exit_code;
      std::string text = fmt::format("{} ended with {}", name_of(status), describe(result));
      if (!status.full_disk.empty())
        text += fmt::format(", and its disk at {} is full", status.full_disk);
      if (!status.last_line.empty()) text += ": " + status.last_line;
      return text;
    }
    case MachineState::lost:
      if (status.was_rebooted) return name_of(status) + " was rebooted while it ran";
      if (status.reason.starts_with("JobLaunchFailure"))
        return fmt::format(
            "{} could not begin job {} ({}): do its nodes see ~/.dtool and the output folder?",
            status.scheduler, status.job, status.reason);
      if (!status.job.empty())
        return fmt::format("job {} of {} is over and left no exit code{}", status.job,
                           status.scheduler, status.reason.empty() ? "" : ": " + status.reason);
      return name_of(status) +
             " was lost: its session is gone and left no exit code (SIGKILL, or "
             "the system ended it)";
    case MachineState::unreachable:
      return fmt::format("{} cannot be asked: {}", name_of(status), status.error);
    case MachineState::unproven:
      return fmt::format("{}: {}", name_of(status), status.error);
    case MachineState::killed:
      return name_of(status) + " was ended by dtool kill";
    case MachineState::cancelled:
      return fmt::format("job {} was cancelled", status.job);
    case MachineState::timed_out:
      return fmt::format("job {} reached its time limit", status.job);
    case MachineState::node_failed:
      return fmt::format("a node of job {} failed", status.job);
    case MachineState::out_of_memory:
      return fmt::format("job {} ran out of memory", status.job);
    case MachineState::preempted:
      return fmt::format("job {} had to make room for another one", status.job);
    default:
      return fmt::format("{}: {}", name_of(status), state_text(status));
  }
}

int rank_of(const MachineStatus& status) {
  return status.was_rebooted ? 0 : meaning_of(status.state).distance;
}

bool comes_before(const MachineStatus& one, const MachineStatus& other) {
  if (rank_of(one) != rank_of(other)) return rank_of(one) < rank_of(other);
  return one.ended_s_ago.value_or(0) > other.ended_s_ago.value_or(0);
}

/// Without the lines.
std::optional<RunCause> find_cause(const std::vector<MachineStatus>& machines) {
  const MachineStatus* first = nullptr;
  for (const MachineStatus& each : machines) {
    if (each.is_well()) continue;
    if (first == nullptr || comes_before(each, *first)) first = &each;
  }
  if (first == nullptr) return std::nullopt;
  RunCause cause{describe_failure(*first), {}, first->id, first->failed_rank};
  // A cause that was found on the machine is better than one guessed from outside, except for runs
  // that a user ended.
  if (first->state == MachineState::killed) return cause;
  const auto saying = std::ranges::find_if(machines, [](const MachineStatus& each) {
    return each.state == MachineState::exited && each.exit_code != 0 && !each.said.empty();
  });
  if (saying != machines.end()) {
    cause.text = saying->said;
    cause.machine = saying->id;
    cause.rank = saying->failed_rank;
  }
  const auto supervised =
      std::ranges::find_if(machines, [](const auto& each) { return !each.cause.empty(); });
  if (supervised == machines.end() || first->was_rebooted) return cause;
  cause.text = supervised->cause;
  cause.rank.reset();
  const auto named =
      supervised->cause_machine
          ? std::ranges::find(machines, *supervised->cause_machine, &MachineStatus::id)
          : machines.end();
  if (named != machines.end()) {
    cause.machine = named->id;
    cause.rank = supervised->cause_rank;
  }
  if (!first->full_disk.empty())
    cause.text += fmt::format(" (its disk at {} is full)", first->full_disk);
  return cause;
}

}  // namespace

std::optional<RunCause> cause_of(const std::vector<MachineStatus>& machines) {
  std::optional<RunCause> cause = find_cause(machines);
  if (!cause) return cause;
  const auto at = std::ranges::find(machines, cause->machine, &MachineStatus::id);
  cause->lines = at->last_lines;
  cause->where = (cause->rank ? fmt::format("rank {} on ", *cause->rank) : "") + name_of(*at);
  return cause;
}

std::optional<EarlierFailure> earlier_failure_of(const std::vector<MachineStatus>& machines) {
  std::optional<EarlierFailure> newest;
  // The length of the log is each machine's own: that of the machine with the failure is wanted.
  bool is_own = false;
  for (const MachineStatus& each : machines) {
    const auto& failure = each.earlier_failure;
    if (!failure || std::ranges::count(machines, failure->machine, &MachineStatus::id) == 0)
      continue;
    if (newest && failure->attempt < newest->attempt) continue;
    const bool is_newer = !newest || failure->attempt > newest->attempt;
    if (!is_newer && (is_own || failure->machine != each.id)) continue;
    newest = failure;
    is_own = failure->machine == each.id;
  }
  if (newest && !is_own) newest->log_bytes.reset();
  return newest;
}

namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

void add_numbers(const nlohmann::json& object, const std::string& prefix, int levels,
                 Numbers& numbers) {
  constexpr std::size_t kMost = 1000;
  for (const auto& [name, value] : object.items()) {
    if (numbers.size() >= kMost) return;
    if (value.is_number()) numbers.emplace_back(prefix + name, value.get<double>());
    if (value.is_null())
      numbers.emplace_back(prefix + name, std::numeric_limits<double>::quiet_NaN());
    if (value.is_object() && levels > 1)
      add_numbers(value, prefix + name + ".", levels - 1, numbers);
  }
}

}  // namespace

std::vector<std::pair<std::string, double>> metric_numbers(const nlohmann::json& object) {
  constexpr int kLevels = 8;
  Numbers numbers;
  if (object.is_object()) add_numbers(object, "", kLevels, numbers);
  return numbers;
}

std::string step_name(const nlohmann::json& object) {
  for (const char* name : {"step", "global_step", "iteration", "iter", "epoch"})
    if (object.contains(name)) return name;
  return "";
}

}  // namespace dtool::cli
