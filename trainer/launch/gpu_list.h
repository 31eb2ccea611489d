// SPDX-License-Identifier: MIT
// How many GPUs a list such as CUDA_VISIBLE_DEVICES shows to a process. dtool-host counts with it,
// too, so it needs nothing but the standard library.
#pragma once

#include <string>
#include <vector>

namespace dtool::trainer {

/// A machine's GPUs.
struct Gpus {
  int devices = 0;
  std::vector<std::string> uuids;  ///< `GPU-...` each; empty if the driver does not tell
};

/// How many of them CUDA shows to a process with this CUDA_VISIBLE_DEVICES. The list names GPUs by
/// number, by UUID (may be cut short), or a MIG instance (CUDA shows only one of them). The first
/// invalid entry ends the list; a repeated entry empties it. HIP_VISIBLE_DEVICES means the same.
/// https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars; PyTorch interprets it
/// the same way (torch/cuda/__init__.py, _parse_visible_devices).
int count_listed(const Gpus& machine, const std::string& list);

}  // namespace dtool::trainer
