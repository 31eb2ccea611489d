// SPDX-License-Identifier: MIT
#include "cli/run/host/gpus.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/words.h"
#include "trainer/launch/gpu_list.h"

namespace dtool::host {
namespace {

constexpr int kMostGpus = 1024;

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

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

HostGpus HostGpus::find(const std::string& root) {
  HostGpus found;
  if (is_program("nvidia-smi")) {
    const ChildResult told = run_program({"nvidia-smi", "-L"}, std::chrono::seconds(20));
    bool has_instances = false;
    for (std::string_view rest = told.out; !rest.empty();) {
      const std::string_view line = cut_line(rest);
      has_instances |= line.starts_with("  MIG ");
      if (!line.starts_with("GPU ")) continue;
      ++found.devices_;
      const std::size_t uuid = line.rfind("(UUID: ");
      if (uuid != line.npos)
        found.uuids_.emplace_back(line.substr(uuid + 7, line.rfind(')') - uuid - 7));
    }
    if (found.devices_ > 0) found.kind_ = has_instances ? GpuKind::mig : GpuKind::nvidia;
  }
  if (found.kind_ == GpuKind::none && (found.devices_ = count_amd(root)) > 0)
    found.kind_ = GpuKind::amd;
  return found;
}

std::int64_t HostGpus::count_visible(const std::optional<std::string>& list) const {
  trainer::Gpus gpus{devices_, uuids_};
  std::optional<std::string> visible = list ? list : variable("CUDA_VISIBLE_DEVICES");
  if (kind_ == GpuKind::amd) {
    if (const auto outer = variable("ROCR_VISIBLE_DEVICES"))
      gpus.devices = trainer::count_listed(gpus, *outer);
    if (const auto own = variable("HIP_VISIBLE_DEVICES"); own && !list) visible = own;
  }
  const int seen = visible ? trainer::count_listed(gpus, *visible) : gpus.devices;
  return kind_ == GpuKind::mig ? std::min(seen, 1) : seen;
}

}  // namespace dtool::host
