// SPDX-License-Identifier: MIT
#include "cli/watch/machine_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>

namespace dtool::cli {

namespace {

constexpr std::array kMeanings = {
    StateMeaning{MachineState::pending, "pending", Ending::open, 6},
    StateMeaning{MachineState::running, "running", Ending::open, 6},
    StateMeaning{MachineState::cancelled, "cancelled", Ending::over, 0},
    StateMeaning{MachineState::timed_out, "timed_out", Ending::over, 0},
    StateMeaning{MachineState::node_failed, "node_failed", Ending::over, 0},
    StateMeaning{MachineState::out_of_memory, "out_of_memory", Ending::over, 0},
    // It may go back into the queue.
    StateMeaning{MachineState::preempted, "preempted", Ending::open, 0},
    StateMeaning{MachineState::exited, "exited", Ending::over, 2},
    StateMeaning{MachineState::stopped, "stopped", Ending::over, 4},
    StateMeaning{MachineState::killed, "killed", Ending::over, 5},
    StateMeaning{MachineState::lost, "lost", Ending::over, 1},
    // The start may be on its way.
    StateMeaning{MachineState::not_started, "not_started", Ending::open, 6},
    StateMeaning{MachineState::unreachable, "unreachable", Ending::unknown, 3},
    StateMeaning{MachineState::unproven, "unproven", Ending::unknown, 3}};

}  // namespace

const StateMeaning& meaning_of(MachineState state) {
  const StateMeaning& meaning = kMeanings.at(static_cast<std::size_t>(state));
  assert(meaning.state == state);
  return meaning;
}

std::string_view to_string(MachineState state) {
  return meaning_of(state).name;
}

std::optional<MachineState> scheduled_state(std::string_view word) {
  if (word == "unknown") return MachineState::unreachable;
  const auto found = std::ranges::find(kMeanings, word, &StateMeaning::name);
  const bool is_its_word = found != kMeanings.end() && found->state <= MachineState::preempted;
  return is_its_word ? std::optional(found->state) : std::nullopt;
}

std::string place_of(const MachineStatus& status) {
  return status.node.empty() ? ssh::to_string(status.host) : status.node;
}

std::string state_text(const MachineStatus& status) {
  if (status.state == MachineState::exited)
    return status.exit_code == 0 ? std::string(kEnded) : fmt::format("exited {}", status.exit_code);
  if (status.state == MachineState::not_started) return "not started";
  if (status.was_rebooted) return "lost, rebooted";
  std::string text(to_string(status.state));
  std::ranges::replace(text, '_', ' ');
  const bool is_explained =
      status.state == MachineState::pending || status.state == MachineState::unproven;
  const bool has_reason = is_explained && !status.reason.empty();
  return has_reason ? fmt::format("{} ({})", text, status.reason) : text;
}

std::optional<TrainingProgress> progress_of(const std::vector<MachineStatus>& machines) {
  std::optional<TrainingProgress> newest;
  for (const MachineStatus& each : machines) {
    if (each.progress && (!newest || each.progress->age_s < newest->age_s)) newest = each.progress;
  }
  return newest;
}

nlohmann::json to_json(const TrainingProgress& progress) {
  nlohmann::json json = {{"step", progress.step}, {"age_s", progress.age_s}};
  const auto put = [&json](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  if (progress.epoch > 0) json["epoch"] = progress.epoch;
  put("loss", progress.loss);
  put("samples_per_s", progress.samples_per_s);
  put("train_success", progress.train_success);
  put("validation_success", progress.validation_success);
  for (const auto& [name, value] : progress.others) json[name] = value;
  return json;
}

nlohmann::json to_json(const killfiles::HostIdentity& identity) {
  if (!identity.is_known()) return nullptr;
  return {{"name", identity.name},
          {"machine_id", identity.machine_id},
          {"boot_id", identity.boot_id},
          {"process_namespace", identity.process_namespace},
          {"host_key", identity.host_key}};
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
  if (status.state == MachineState::unproven) {
    json["recorded_host"] = to_json(status.recorded_host);
    json["found_host"] = to_json(status.found_host);
  }
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
  put("output_s_ago", status.output_s_ago);
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
