// SPDX-License-Identifier: MIT
// This machine's GPUs, and how many of them a run's processes will see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "killfiles/gpu_list.h"
#include "ssh/wire/check.h"

namespace dtool::host {

/// How the GPUs of a machine are counted.
enum class GpuKind { none, nvidia, amd };

/// What nvidia-smi says, or the AMD driver's files.
class HostGpus {
 public:
  /// Asks the drivers; nvidia-smi has 20 s for each answer. It is asked a second time, for its list
  /// of devices, if a GPU is cut into MIG instances or the driver is too old to tell. `root` is for
  /// tests.
  static HostGpus find(const std::string& root = "");

  /// How many a process of the run sees. The run's variables win over those of this process. AMD's
  /// runtime takes HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES, among what ROCR_VISIBLE_DEVICES
  /// leaves. `gpus`: the list of --gpus, which stands for the first two; empty: not given.
  std::int64_t count_visible(const VisibleGpus& given, const std::string& gpus) const;

  /// Why not all GPUs of that list can be used here, in a sentence; empty if they can.
  std::string lack_of(const VisibleGpus& given, const std::string& gpus) const;

  /// Adds their names, driver and nvidia-smi's fault.
  void tell(Hardware& hardware) const;

 private:
  bool read_query(const std::string& text);
  void read_list(const std::string& text);
  bool is_any_cut() const;
  /// Those that ROCR_VISIBLE_DEVICES leaves.
  killfiles::Gpus left(const VisibleGpus& given) const;
  /// `device`: the GPU of `left` that the entry names, if it is there.
  std::string lack_of_entry(const killfiles::Gpus& left, const std::string& entry,
                            std::optional<int> device) const;

  GpuKind kind_ = GpuKind::none;
  killfiles::Gpus gpus_;
  std::vector<std::string> instances_;  ///< UUIDs of MIG instances
  std::vector<std::string> names_;      ///< `NAME, MEMORY` each
  std::string driver_;
  std::string fault_;
};

}  // namespace dtool::host
