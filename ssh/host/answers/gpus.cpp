// SPDX-License-Identifier: MIT
#include "ssh/host/answers/gpus.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr int kMostGpus = 1024;
constexpr std::chrono::seconds kForDriver{20};

/// The AMD driver (amdkfd) has a folder for each processor of the machine; `gpu_id` is 0 for a CPU.
int count_amd(const std::string& root) {
  int gpus = 0;
  for (int node = 0; node < kMostGpus; ++node) {
    const auto id =
        read_file(root + "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/gpu_id");
    if (!id) break;
    std::string_view text = *id;
    if (parse_number<std::int64_t>(cut_word(text)).value_or(0) != 0) ++gpus;
  }
  return gpus;
}

/// The run's value, else this process's.
std::optional<std::string> value_of(const std::optional<std::string>& given, const char* name) {
  if (given) return given;
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

/// The text after the last `, `, which is taken off; nothing if there is none.
std::optional<std::string> cut_last_field(std::string_view& line) {
  constexpr std::string_view kBetween = ", ";
  const std::size_t at = line.rfind(kBetween);
  if (at == line.npos) return std::nullopt;
  const std::string field(line.substr(at + kBetween.size()));
  line = line.substr(0, at);
  return field;
}

std::string uuid_in(std::string_view line) {
  constexpr std::string_view kMark = "(UUID: ";
  const std::size_t at = line.rfind(kMark);
  if (at == line.npos) return {};
  const std::size_t begin = at + kMark.size();
  return std::string(line.substr(begin, line.rfind(')') - begin));
}

}  // namespace

/// Lines `NAME, MEMORY, DRIVER, UUID, MIG MODE`. Returns whether there is one and all are such.
bool HostGpus::read_query(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = cut_line(rest);
    const auto mode = cut_last_field(line);
    const auto uuid = cut_last_field(line);
    const auto driver = cut_last_field(line);
    if (!driver || !uuid->starts_with("GPU-")) return false;
    driver_ = *driver;
    gpus_.uuids.push_back(*uuid);
    gpus_.is_cut.push_back(*mode == "Enabled");
    names_.emplace_back(line);
    ++gpus_.devices;
  }
  return gpus_.devices > 0;
}

/// Lines `GPU 0: NAME (UUID: GPU-…)`, each followed by `  MIG …  (UUID: MIG-…)` of its instances.
void HostGpus::read_list(const std::string& text) {
  gpus_ = {};
  const bool has_names = !names_.empty();
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = cut_line(rest);
    if (line.starts_with("  MIG ") && gpus_.devices > 0) {
      gpus_.is_cut.back() = true;
      instances_.push_back(uuid_in(line));
    }
    if (!line.starts_with("GPU ")) continue;
    ++gpus_.devices;
    gpus_.is_cut.push_back(false);
    if (const std::size_t colon = line.find(": "); !has_names && colon != line.npos)
      names_.emplace_back(line.substr(colon + 2, line.find(" (UUID") - colon - 2));
    if (std::string uuid = uuid_in(line); !uuid.empty()) gpus_.uuids.push_back(std::move(uuid));
  }
}

bool HostGpus::is_any_cut() const {
  return std::ranges::count(gpus_.is_cut, true) > 0;
}

HostGpus HostGpus::find(const std::string& root) {
  HostGpus found;
  if (is_program("nvidia-smi")) {
    const ChildResult told = run_program(
        {"nvidia-smi", "--query-gpu=name,memory.total,driver_version,uuid,mig.mode.current",
         "--format=csv,noheader"},
        kForDriver);
    const bool is_read = told.ok() && found.read_query(told.out);
    if (!is_read) found = HostGpus();
    if (told.timed_out) {
      found.fault_ = "it does not answer";
    } else if (!is_read || found.is_any_cut()) {
      const ChildResult list = run_program({"nvidia-smi", "-L"}, kForDriver);
      found.read_list(list.out);
      if (!list.ok()) found.fault_ = list.timed_out ? "it does not answer" : list.out + list.err;
    }
    if (found.gpus_.devices > 0) found.kind_ = GpuKind::nvidia;
  }
  if (found.kind_ == GpuKind::none && (found.gpus_.devices = count_amd(root)) > 0)
    found.kind_ = GpuKind::amd;
  return found;
}

killfiles::Gpus HostGpus::left(const VisibleGpus& given) const {
  killfiles::Gpus left = gpus_;
  if (kind_ != GpuKind::amd) return left;
  if (const auto outer = value_of(given.rocr, "ROCR_VISIBLE_DEVICES"))
    left.devices = killfiles::count_listed(left, *outer);
  return left;
}

std::int64_t HostGpus::count_visible(const VisibleGpus& given, const std::string& gpus) const {
  std::optional<std::string> visible;
  if (!gpus.empty()) {
    visible = gpus;
  } else {
    if (kind_ == GpuKind::amd) visible = value_of(given.hip, "HIP_VISIBLE_DEVICES");
    if (!visible) visible = value_of(given.cuda, "CUDA_VISIBLE_DEVICES");
  }
  const killfiles::Gpus there = left(given);
  if (visible) return killfiles::count_listed(there, *visible);
  return is_any_cut() ? 1 : there.devices;
}

std::string HostGpus::lack_of_entry(const killfiles::Gpus& left, const std::string& entry,
                                    std::optional<int> device) const {
  if (left.devices == 0) return "this host has no GPU";
  if (!entry.starts_with("MIG-")) {
    if (device) return {};
    return "this host has no GPU " + entry + " (it has " + std::to_string(left.devices) + ")";
  }
  if (std::ranges::count(instances_, entry) > 0) return {};
  return "this host has no MIG instance " + entry;
}

std::string HostGpus::lack_of(const VisibleGpus& given, const std::string& gpus) const {
  const killfiles::Gpus there = left(given);
  const std::vector<std::string> entries = killfiles::entries_of(gpus);
  std::set<int> devices;
  for (const std::string& entry : entries) {
    const auto device = killfiles::device_of(there, entry, static_cast<int>(devices.size()));
    if (std::string lack = lack_of_entry(there, entry, device); !lack.empty()) return lack;
    if (device && !devices.insert(*device).second)
      return entry + " is a GPU that was named before, and CUDA then shows none";
  }
  if (entries.size() < 2) return {};
  for (const std::string& entry : entries) {
    const auto device = killfiles::device_of(there, entry);
    const bool is_cut = device && static_cast<std::size_t>(*device) < there.is_cut.size() &&
                        there.is_cut[static_cast<std::size_t>(*device)];
    if (is_cut || entry.starts_with("MIG-"))
      return entry + (is_cut ? " is cut into MIG instances, and" : " is a MIG instance, and") +
             " CUDA shows a process one instance and nothing beside it";
  }
  return {};
}

void HostGpus::tell(Hardware& hardware) const {
  hardware.gpus = names_;
  hardware.driver = driver_;
  hardware.gpu_fault = fault_;
  if (kind_ == GpuKind::amd) hardware.gpus.assign(static_cast<std::size_t>(gpus_.devices), "AMD");
}

}  // namespace dtool::host
