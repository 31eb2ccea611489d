// SPDX-License-Identifier: MIT
// This machine's GPUs, and how many of them a run's processes will see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

/// How the GPUs of a machine are counted.
enum class GpuKind {
  none,
  nvidia,
  mig,  ///< NVIDIA GPUs cut into instances: CUDA shows a process only one of these
  amd,
};

/// What `nvidia-smi -L` says, or the AMD driver's files.
class HostGpus {
 public:
  /// Asks the drivers. Takes as long as nvidia-smi takes, at most 20 s. `root` is for tests.
  static HostGpus find(const std::string& root = "");

  /// How many a process of the run sees. `list` is the CUDA_VISIBLE_DEVICES that the run's user
  /// gave; without one, the variables of this process count (CUDA_VISIBLE_DEVICES, and for AMD
  /// ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES).
  std::int64_t count_visible(const std::optional<std::string>& list) const;

 private:
  GpuKind kind_ = GpuKind::none;
  int devices_ = 0;
  std::vector<std::string> uuids_;  ///< of NVIDIA's
};

}  // namespace dtool::host
