#include "cli/machine_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/failures.h"
#include "cli/scripts.h"
#include "ssh/quote.h"
#include "ssh/script.h"

namespace dtool::cli {
namespace {

using Answers = std::multimap<std::string, std::string>;

std::optional<std::int64_t> number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> find_number(const Answers& answers, const std::string& name) {
  return number(ssh::find_answer(answers, name).value_or(""));
}

std::optional<int> small(std::optional<std::int64_t> value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

/// `0, 97, 30123, 81559`; what a GPU does not tell is `[N/A]` there.
GpuUse read_gpu(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const std::size_t comma = std::min(line.find(','), line.size());
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  fields.resize(4);
  return {static_cast<int>(number(fields[0]).value_or(0)), small(number(fields[1])),
          small(number(fields[2])), small(number(fields[3]))};
}

std::optional<Progress> read_progress(const Answers& answers) {
  Progress progress;
  bool is_told = false;
  // A run that only validates has no lines of training.
  for (const char* each : {"validation", "metrics"}) {
    const auto line = ssh::find_answer(answers, each);
    if (!line) continue;
    const nlohmann::json json = nlohmann::json::parse(*line, nullptr, false);
    if (!json.is_object()) continue;
    is_told = true;
    const auto take = [&json](const char* name, auto& number) {
      const auto found = json.find(name);
      if (found != json.end() && found->is_number()) found->get_to(number.emplace());
    };
    std::optional<std::int64_t> epoch, step;
    take("epoch", epoch);
    take("step", step);
    progress.epoch = epoch.value_or(0);
    progress.step = step.value_or(0);
    take("loss", progress.loss);
    take("samples_per_s", progress.samples_per_s);
    take("train_success", progress.train_success);
    take("validation_success", progress.validation_success);
  }
  if (!is_told) return std::nullopt;
  progress.age_s = find_number(answers, "metrics_s_ago").value_or(0);
  return progress;
}

/// What a scheduler says of the job, by the names that its probe gives to it.
std::optional<MachineState> scheduled_state(const std::string& word) {
  static const std::map<std::string, MachineState> states = {
      {"pending", MachineState::pending},         {"running", MachineState::running},
      {"cancelled", MachineState::cancelled},     {"timed_out", MachineState::timed_out},
      {"node_failed", MachineState::node_failed}, {"out_of_memory", MachineState::out_of_memory},
      {"preempted", MachineState::preempted},     {"unknown", MachineState::unreachable}};
  const auto found = states.find(word);
  return found == states.end() ? std::nullopt : std::optional(found->second);
}

MachineState judge(MachineStatus& status, const Answers& answers) {
  if (const auto word = ssh::find_answer(answers, "scheduler_state")) {
    const auto code = find_number(answers, "exit_code");
    if (ssh::find_answer(answers, "killed") && *word != "running") return MachineState::killed;
    const auto state = scheduled_state(*word);
    if (state && !code) return *state;
    if (!code) return MachineState::lost;
    status.exit_code = static_cast<int>(*code);
    return ssh::find_answer(answers, "stopped") ? MachineState::stopped : MachineState::exited;
  }
  if (!ssh::find_answer(answers, "pid")) {
    return ssh::find_answer(answers, "killed") ? MachineState::killed : MachineState::not_started;
  }
  if (status.up_s) return MachineState::running;
  if (ssh::find_answer(answers, "killed")) return MachineState::killed;
  if (const auto code = find_number(answers, "exit_code")) {
    status.exit_code = static_cast<int>(*code);
    return ssh::find_answer(answers, "stopped") ? MachineState::stopped : MachineState::exited;
  }
  return MachineState::lost;
}

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
      if (status.reason == "JobLaunchFailure")
        return fmt::format(
            "Slurm could not begin job {} ({}): do its nodes see ~/.dtool and the output folder?",
            status.job, status.reason);
      if (!status.job.empty())
        return fmt::format("job {} of Slurm is over and left no exit code{}", status.job,
                           status.reason.empty() ? "" : ": " + status.reason);
      return name_of(status) +
             " was lost: its session is gone and left no exit code (SIGKILL, or "
             "the system ended it)";
    case MachineState::unreachable:
      return fmt::format("{} cannot be asked: {}", name_of(status), status.error);
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

/// Lower is nearer to the cause. Machines that were told to stop by others' failure exit later; an
/// exit code says more than a missing answer.
int rank_of(const MachineStatus& status) {
  switch (status.state) {
    case MachineState::cancelled:
    case MachineState::timed_out:
    case MachineState::node_failed:
    case MachineState::out_of_memory:
    case MachineState::preempted:
      return 0;
    case MachineState::lost:
      return status.was_rebooted ? 0 : 1;
    case MachineState::exited:
      return 2;
    case MachineState::unreachable:
      return 3;
    case MachineState::stopped:
      return 4;
    case MachineState::killed:
      return 5;
    default:
      return 6;
  }
}

bool comes_before(const MachineStatus& one, const MachineStatus& other) {
  if (rank_of(one) != rank_of(other)) return rank_of(one) < rank_of(other);
  return one.ended_s_ago.value_or(0) > other.ended_s_ago.value_or(0);
}

/// Where the escape sequence that begins at `at` has its last character (ECMA-48).
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  const auto skip = [&text](std::size_t from, char least, char most) {
    while (from < text.size() && text[from] >= least && text[from] <= most) ++from;
    return from;
  };
  if (text.substr(at + 1).starts_with('[')) return skip(at + 2, ' ', '?');
  if (text.substr(at + 1).starts_with(']')) {  // a window's title, up to a bell
    const std::size_t end = text.find('\a', at);
    return end == text.npos ? text.size() : end;
  }
  return skip(at + 1, ' ', '/');
}

/// What one machine's part of the answer says.
MachineStatus read_status(const killfiles::Machine& machine, const ssh::HostResult& result) {
  MachineStatus status;
  status.id = machine.id;
  status.host = result.host;
  const Answers answers = ssh::read_answers(result.out);
  if (!ssh::find_answer(answers, "looked")) {
    status.error =
        result.failure == ssh::Failure::none && result.error.empty()
            ? fmt::format("it did not say how it is: {}",
                          without_controls(result.err.empty() ? describe(result) : result.err))
            : describe(result);
    status.hint = result.hint;
    return status;
  }
  status.pid = find_number(answers, "pid");
  status.up_s = find_number(answers, "up_s");
  status.node = ssh::find_answer(answers, "node").value_or("");
  status.job = ssh::find_answer(answers, "job").value_or("");
  status.reason = without_controls(ssh::find_answer(answers, "reason").value_or(""));
  if (status.reason == "None") status.reason.clear();  // Slurm's word for it
  status.state = judge(status, answers);
  if (status.state == MachineState::unreachable)
    status.error = fmt::format("its scheduler does not answer: {}", status.reason);
  status.was_rebooted =
      status.state == MachineState::lost && ssh::find_answer(answers, "rebooted").has_value();
  status.ended_s_ago = status.up_s ? std::nullopt : find_number(answers, "ended_s_ago");
  status.processes = static_cast<int>(find_number(answers, "processes").value_or(0));
  status.cpu_percent = small(find_number(answers, "cpu_percent"));
  status.memory_bytes = find_number(answers, "memory_bytes");
  const auto [begin, end] = answers.equal_range("gpu");
  for (auto each = begin; each != end; ++each) status.gpus.push_back(read_gpu(each->second));
  status.last_line = without_controls(ssh::find_answer(answers, "last_line").value_or(""));
  status.cause = without_controls(ssh::find_answer(answers, "cause").value_or(""));
  status.full_disk = without_controls(ssh::find_answer(answers, "full_disk").value_or(""));
  status.said = without_controls(ssh::find_answer(answers, "said").value_or(""));
  status.supervision = without_controls(ssh::find_answer(answers, "supervision").value_or(""));
  status.attempt = small(find_number(answers, "attempt")).value_or(0);
  const auto [first_line, last_line] = answers.equal_range("line");
  for (auto each = first_line; each != last_line; ++each)
    status.last_lines.push_back(without_controls(each->second));
  status.progress = read_progress(answers);
  return status;
}

}  // namespace

std::string_view to_string(MachineState state) {
  switch (state) {
    case MachineState::pending:
      return "pending";
    case MachineState::cancelled:
      return "cancelled";
    case MachineState::timed_out:
      return "timed_out";
    case MachineState::node_failed:
      return "node_failed";
    case MachineState::out_of_memory:
      return "out_of_memory";
    case MachineState::preempted:
      return "preempted";
    case MachineState::running:
      return "running";
    case MachineState::exited:
      return "exited";
    case MachineState::stopped:
      return "stopped";
    case MachineState::killed:
      return "killed";
    case MachineState::lost:
      return "lost";
    case MachineState::not_started:
      return "not_started";
    case MachineState::unreachable:
      return "unreachable";
  }
  return "unreachable";
}

std::string place_of(const MachineStatus& status) {
  return status.node.empty() ? ssh::to_string(status.host) : status.node;
}

std::string state_text(const MachineStatus& status) {
  if (status.state == MachineState::exited) return fmt::format("exited {}", status.exit_code);
  if (status.state == MachineState::not_started) return "not started";
  if (status.was_rebooted) return "lost, rebooted";
  std::string text(to_string(status.state));
  std::ranges::replace(text, '_', ' ');
  const bool has_reason = status.state == MachineState::pending && !status.reason.empty();
  return has_reason ? fmt::format("{} ({})", text, status.reason) : text;
}

ssh::Command status_command(const std::vector<AskedMachine>& machines, Detail detail) {
  std::string text(ssh::answer_function());
  if (detail == Detail::brief) text += "brief=yes\n";
  text.append("tell() (\n").append(scripts::kStatus).append("\n)\n");
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const killfiles::Machine& machine = machines[i].machine;
    text +=
        fmt::format("answer part {}\nrun_id={}\nstate={}\nlog={}\noutput={}\ntell\n", i,
                    ssh::quote(machines[i].run_id), ssh::quote_path(machine.state_folder),
                    ssh::quote_path(machine.log),
                    machine.output_folder.empty() ? "" : ssh::quote_path(machine.output_folder));
  }
  return ssh::bash(text);
}

std::vector<MachineStatus> read_statuses(const std::vector<AskedMachine>& machines,
                                         const ssh::HostResult& result) {
  const auto answers = ssh::parts_by_answer(result.out, "part");
  std::vector<MachineStatus> statuses;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    ssh::HostResult own = result;
    const auto found = answers.find(std::to_string(i));
    own.out = found == answers.end() ? "" : found->second;
    statuses.push_back(read_status(machines[i].machine, own));
  }
  return statuses;
}

std::string without_controls(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (each == '\x1b') {
      i = end_of_escape(text, i);
    } else if (each == '\t' || each == '\n') {
      clean += ' ';
    } else if (static_cast<unsigned char>(each) >= 0x20 && each != 0x7f) {
      clean += each;
    }
  }
  return clean;
}

std::optional<RunCause> cause_of(const std::vector<MachineStatus>& machines) {
  const MachineStatus* first = nullptr;
  for (const MachineStatus& each : machines) {
    if (each.is_well()) continue;
    if (first == nullptr || comes_before(each, *first)) first = &each;
  }
  if (first == nullptr) return std::nullopt;
  RunCause cause{describe_failure(*first), first->last_lines};
  // What was found out where it happened goes before what can be guessed from outside, but for runs
  // that a user ended.
  if (first->state == MachineState::killed) return cause;
  const auto saying = std::ranges::find_if(machines, [](const MachineStatus& each) {
    return each.state == MachineState::exited && each.exit_code != 0 && !each.said.empty();
  });
  if (saying != machines.end()) cause.text = saying->said;
  const auto supervised =
      std::ranges::find_if(machines, [](const auto& each) { return !each.cause.empty(); });
  if (supervised == machines.end() || first->was_rebooted) return cause;
  cause.text = supervised->cause;
  if (!first->full_disk.empty())
    cause.text += fmt::format(" (its disk at {} is full)", first->full_disk);
  return cause;
}

std::optional<Progress> progress_of(const std::vector<MachineStatus>& machines) {
  std::optional<Progress> newest;
  for (const MachineStatus& each : machines) {
    if (each.progress && (!newest || each.progress->age_s < newest->age_s)) newest = each.progress;
  }
  return newest;
}

nlohmann::json to_json(const Progress& progress) {
  nlohmann::json json = {{"step", progress.step}, {"age_s", progress.age_s}};
  const auto put = [&json](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  if (progress.epoch > 0) json["epoch"] = progress.epoch;
  put("loss", progress.loss);
  put("samples_per_s", progress.samples_per_s);
  put("train_success", progress.train_success);
  put("validation_success", progress.validation_success);
  return json;
}

nlohmann::json to_json(const MachineStatus& status) {
  nlohmann::json json = {{"id", status.id},
                         {"host", ssh::to_string(status.host)},
                         {"state", std::string(to_string(status.state))},
                         {"processes", status.processes}};
  const auto put = [&json](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  if (status.exit_code >= 0) json["exit_code"] = status.exit_code;
  if (status.state == MachineState::lost) json["rebooted"] = status.was_rebooted;
  put("pid", status.pid);
  put("up_s", status.up_s);
  put("ended_s_ago", status.ended_s_ago);
  put("cpu_percent", status.cpu_percent);
  put("memory_bytes", status.memory_bytes);
  for (const GpuUse& gpu : status.gpus) {
    nlohmann::json entry = {{"index", gpu.index}};
    if (gpu.use_percent) entry["use_percent"] = *gpu.use_percent;
    if (gpu.memory_mib) entry["memory_mib"] = *gpu.memory_mib;
    if (gpu.memory_total_mib) entry["memory_total_mib"] = *gpu.memory_total_mib;
    json["gpus"].push_back(entry);
  }
  if (!status.last_line.empty()) json["last_line"] = status.last_line;
  if (!status.full_disk.empty()) json["full_disk"] = status.full_disk;
  if (!status.supervision.empty()) json["supervision"] = status.supervision;
  if (!status.node.empty()) json["node"] = status.node;
  if (!status.job.empty()) json["job"] = status.job;
  if (!status.reason.empty()) json["reason"] = status.reason;
  if (!status.error.empty()) json["error"] = status.error;
  if (!status.hint.empty()) json["hint"] = status.hint;
  return json;
}

}  // namespace dtool::cli
