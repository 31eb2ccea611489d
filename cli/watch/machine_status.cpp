// SPDX-License-Identifier: MIT
#include "cli/watch/machine_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dtool::cli {

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
    case MachineState::unproven:
      return "unproven";
  }
  return "unreachable";
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
