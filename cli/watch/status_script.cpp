#include "cli/watch/status_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/failures.h"
#include "cli/scripts.h"
#include "cli/terminal_text.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"

namespace dtool::cli {
namespace {

using ssh::Answers;
using ssh::find_number;

/// `0, 97, 30123, 81559`; what a GPU does not tell is `[N/A]` there.
GpuUse read_gpu(std::string_view line) {
  std::array<std::optional<int>, 4> numbers;
  for (std::optional<int>& number : numbers) {
    const std::size_t comma = std::min(line.find(','), line.size());
    std::string_view field = line.substr(0, comma);
    field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
    number = ssh::read_number<int>(field);
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return {numbers[0].value_or(0), numbers[1], numbers[2], numbers[3]};
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
  progress.age_s = find_number<std::int64_t>(answers, "metrics_s_ago").value_or(0);
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

/// Where the host has told an exit code.
std::optional<MachineState> ended_state(MachineStatus& status, const Answers& answers) {
  const auto code = find_number<int>(answers, "exit_code");
  if (!code) return std::nullopt;
  status.exit_code = *code;
  return ssh::find_answer(answers, "stopped") ? MachineState::stopped : MachineState::exited;
}

MachineState judge(MachineStatus& status, const Answers& answers) {
  const bool is_killed = ssh::find_answer(answers, "killed").has_value();
  if (const auto word = ssh::find_answer(answers, "scheduler_state")) {
    if (is_killed && *word != "running") return MachineState::killed;
    if (const auto ended = ended_state(status, answers)) return *ended;
    return scheduled_state(*word).value_or(MachineState::lost);
  }
  const bool was_started = ssh::find_answer(answers, "pid").has_value();
  if (was_started && status.up_s) return MachineState::running;
  if (is_killed) return MachineState::killed;
  if (!was_started) return MachineState::not_started;
  return ended_state(status, answers).value_or(MachineState::lost);
}

/// What is only guessed from what is not there is unproven where another host answers than the one
/// that was recorded, or the run's folder is not there. What a scheduler says, or the machine's own
/// record of its end, holds wherever it is read.
void doubt(const killfiles::Machine& machine, const Answers& answers, const std::string& host_key,
           MachineStatus& status) {
  const bool is_guessed =
      status.state == MachineState::lost || status.state == MachineState::not_started ||
      (status.state == MachineState::killed && !ssh::find_answer(answers, "exit_code"));
  if (!is_guessed || ssh::find_answer(answers, "scheduler_state")) return;
  status.recorded_host = machine.identity;
  status.found_host = killfiles::parse_identity(ssh::find_answer(answers, "host").value_or(""))
                          .value_or(killfiles::HostIdentity());
  if (status.found_host.is_known()) status.found_host.host_key = host_key;
  const auto likeness = compare(status.recorded_host, status.found_host);
  const bool has_no_folder = ssh::find_answer(answers, "no_folder").has_value();
  if (likeness == killfiles::Likeness::another) {
    status.state = MachineState::unproven;
    status.reason = "another host";
    status.error = fmt::format("another host answers to this name, {}; it was started on {}",
                               describe(status.found_host), describe(status.recorded_host));
    status.hint = fmt::format("lead the name to {} (HostName in the SSH configuration)",
                              status.recorded_host.name);
  } else if (has_no_folder && likeness != killfiles::Likeness::rebooted) {
    const int left = find_number<int>(answers, "processes").value_or(0);
    status.state = MachineState::unproven;
    status.reason = "no folder";
    status.error = "the run's folder is gone; ";
    status.error +=
        left == 0 ? "what was started cannot be known"
                  : fmt::format("{} of its processes {} left", left, left == 1 ? "is" : "are");
    status.hint = "is the home folder the one of then?";
  }
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
            : without_controls(describe(result));
    status.hint = result.hint;
    return status;
  }
  status.pid = find_number<std::int64_t>(answers, "pid");
  status.up_s = find_number<std::int64_t>(answers, "up_s");
  const auto text = [&answers](const char* name) {
    return without_controls(ssh::find_answer(answers, name).value_or(""));
  };
  status.node = text("node");
  status.job = text("job");
  if (const std::string scheduler = text("scheduler"); !scheduler.empty())
    status.scheduler = scheduler;
  status.reason = text("reason");
  if (status.reason == "None") status.reason.clear();  // Slurm's word for it
  status.state = judge(status, answers);
  doubt(machine, answers, result.host_key, status);
  if (status.state == MachineState::unreachable)
    status.error = fmt::format("its scheduler does not answer: {}", status.reason);
  status.was_rebooted =
      status.state == MachineState::lost && ssh::find_answer(answers, "rebooted").has_value();
  status.ended_s_ago =
      status.up_s ? std::nullopt : find_number<std::int64_t>(answers, "ended_s_ago");
  status.processes = find_number<int>(answers, "processes").value_or(0);
  status.cpu_percent = find_number<int>(answers, "cpu_percent");
  status.memory_bytes = find_number<std::int64_t>(answers, "memory_bytes");
  for (const std::string& line : ssh::every_answer(answers, "gpu"))
    status.gpus.push_back(read_gpu(line));
  status.last_line = text("last_line");
  status.cause = text("cause");
  status.full_disk = text("full_disk");
  status.said = text("said");
  status.supervision = text("supervision");
  status.attempt = find_number<int>(answers, "attempt").value_or(0);
  for (const std::string& line : ssh::every_answer(answers, "line"))
    status.last_lines.push_back(without_controls(line));
  status.progress = read_progress(answers);
  return status;
}

}  // namespace

ssh::Command status_command(const std::vector<AskedMachine>& machines, Detail detail) {
  std::string text(ssh::answer_function());
  text.append(ssh::scripts::kIdentify).append("identify\n");
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

}  // namespace dtool::cli
