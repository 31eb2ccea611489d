// SPDX-License-Identifier: MIT
#include "trainer/launch/visible_gpus.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "killfiles/gpu_list.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

namespace fs = std::filesystem;

/// /dev/nvidia0, /dev/nvidia3, ...: a container may have any of them.
int count_devices(const fs::path& root) {
  int devices = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "dev", none)) {
    const std::string name = entry.path().filename();
    const bool is_gpu = name.starts_with("nvidia") && name.size() > 6 &&
                        name.find_first_not_of("0123456789", 6) == name.npos;
    if (is_gpu) ++devices;
  }
  return devices;
}

/// Empty if the driver does not tell.
std::vector<std::string> read_uuids(const fs::path& root) {
  std::vector<std::string> uuids;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", none)) {
    std::ifstream lines(entry.path() / "information");
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find("GPU-");
      if (line.starts_with("GPU UUID") && at != line.npos) uuids.push_back(line.substr(at));
    }
  }
  return uuids;
}

}  // namespace

int count_gpus(const Environment& environment, const fs::path& root) {
  const int devices = count_devices(root);
  const auto visible = environment("CUDA_VISIBLE_DEVICES");
  return visible ? killfiles::count_listed({devices, read_uuids(root), {}}, *visible) : devices;
}

void check_gpus(Backend wanted, int workers, int gpus) {
  if (wanted == Backend::gloo || gpus == 0 || workers <= gpus) return;
  throw UsageError(
      fmt::format("{} processes need a GPU each, and this machine shows {}", workers, gpus),
      "lower --nproc_per_node, look at CUDA_VISIBLE_DEVICES, or set distributed.backend = "
      "\"gloo\"");
}

}  // namespace dtool::trainer
