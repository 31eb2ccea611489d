// SPDX-License-Identifier: MIT
#include "cli/watch/record_end.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <string_view>

#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_answer.h"

namespace dtool::cli {
namespace {

constexpr std::chrono::seconds kForStates{20};

/// The numbers and words of a line of metrics.jsonl, which a user's program may have written.
nlohmann::json metrics_in(std::string_view line) {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_object()) return nullptr;
  nlohmann::json metrics = nlohmann::json::object();
  for (const auto& [name, value] : parsed.items())
    if (value.is_number_integer() || value.is_string()) metrics[name] = value;
  for (const auto& [name, value] : metric_numbers(parsed))
    if (!metrics.contains(name) && std::isfinite(value)) metrics[name] = value;
  return metrics;
}

/// When the last machine ended, by each host's own clock of how long ago.
std::string end_time(const std::vector<MachineStatus>& machines) {
  std::optional<std::int64_t> least;
  for (const MachineStatus& each : machines) {
    if (each.ended_s_ago && (!least || *each.ended_s_ago < *least)) least = each.ended_s_ago;
  }
  const auto now = std::chrono::system_clock::now() -
                   std::chrono::seconds(std::clamp<std::int64_t>(least.value_or(0), 0, 1 << 30));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

std::string name_of_file(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// Nothing if there is none, or if it cannot be read, which is told.
std::optional<RunRecord> own_record(Console& console, const std::string& run_id) {
  if (!killfiles::is_run_id(run_id)) return std::nullopt;  // the id is of a run of AllenAct's
  try {
    return find_record(run_id);
  } catch (const std::exception& error) {
    console.note(fmt::format("{}: how it ended is not recorded: {}", run_id, error.what()));
    return std::nullopt;
  }
}

/// Whether all has ended, and something of it had begun: a start that goes on is no end.
bool has_been(const std::vector<MachineStatus>& machines) {
  return has_ended(machines) && std::ranges::any_of(machines, [](const MachineStatus& each) {
           return each.state != MachineState::not_started;
         });
}

}  // namespace

bool is_complete(const RunRecord& record) {
  const bool is_python =
      record.environment.contains("env_activate_path") ||
      (!record.program.empty() && name_of_file(record.program.front()).starts_with("python"));
  return record.end && (!record.packages.empty() || !is_python || record.engine != "ssh");
}

void add_end(const std::vector<MachineStatus>& machines, RunRecord& record) {
  if (!has_been(machines)) return;
  for (const MachineStatus& each : machines) {
    if (record.packages.empty()) record.packages = each.packages;
    if (record.simulator.is_null() && record.program.empty())  // the bundled trainer's
      record.simulator = metrics_in(each.simulator);
  }
  if (record.end) return;
  RecordedEnd end;
  end.at = end_time(machines);
  end.state = states_text(machines);
  end.exit_code = exit_code_of(machines);
  end.attempts = attempt_of(machines) + 1;
  if (const auto cause = cause_of(machines)) end.cause = cause->text;
  for (const MachineStatus& each : machines) {
    if (end.metrics.is_null()) end.metrics = metrics_in(each.metrics);
    if (end.validation.is_null()) end.validation = metrics_in(each.validation);
  }
  record.end = std::move(end);
}

void note_end(Console& console, const std::string& run_id,
              const std::vector<MachineStatus>& machines) {
  if (!has_been(machines)) return;
  auto record = own_record(console, run_id);
  if (!record || is_complete(*record)) return;
  add_end(machines, *record);
  try {
    write_record(*record);
  } catch (const std::exception& error) {
    console.note(fmt::format("{}: how it ended is not recorded: {}", run_id, error.what()));
  }
}

std::vector<MachineStatus> ask_for_end(Console& console, ssh::Remote& remote,
                                       const killfiles::Killfile& killfile) {
  const auto record = own_record(console, killfile.run_id);
  if (!record || is_complete(*record)) return {};
  const auto nobody = [](std::size_t, const ssh::HostResult&, const MachineStatus&) {};
  auto machines = ask_machines(remote, killfile, all_machines(killfile), nobody, kForStates,
                               ssh::Follows::more);
  note_end(console, killfile.run_id, machines);
  return machines;
}

void note_forgotten(Console& console, const std::string& run_id, const std::string& left_on) {
  auto record = own_record(console, run_id);
  if (!record) return;
  record->forgotten = {utc_now(), left_on};
  try {
    write_record(*record);
  } catch (const std::exception& error) {
    console.note(
        fmt::format("{}: that it was forgotten is not recorded: {}", run_id, error.what()));
  }
}

}  // namespace dtool::cli
