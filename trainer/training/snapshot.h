// SPDX-License-Identifier: MIT
// The content of a checkpoint: everything that the rest of a run depends on, in LibTorch's archive
// format, which torch.jit.load reads in Python.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

/// A copy on the CPU of what training changes; several snapshots of one step share it.
struct TrainedState {
  std::vector<NamedTensor> model;  ///< parameters, then buffers
  OptimizerKind kind{};
  Optimizer::State optimizer;
};

/// The state of a run at one step, which training no longer touches.
struct Snapshot {
  std::shared_ptr<const TrainedState> trained;
  Progress progress;
  std::vector<NamedTensor> others;
};

TrainedState copy_state(const Weights& model, Optimizer& optimizer);

/// Copies `progress` and `others`, the other state of this kind of workload.
Snapshot take_snapshot(std::shared_ptr<const TrainedState> trained, const Progress& progress,
                       const std::vector<NamedTensor>& others = {});

/// The archive's bytes. Any thread may call it.
std::string pack(const Snapshot& snapshot);

/// The parts that are returned rather than restored in place.
struct Unpacked {
  Progress progress;
  std::vector<NamedTensor> others;
};

/// Restores model and optimizer; `name` is for messages. Throws UsageError if the bytes are not
/// such an archive, or belong to another model or optimizer; the model may then be partly filled.
Unpacked unpack(const std::string& bytes, const std::string& name, Weights& model,
                Optimizer& optimizer);

/// The same for a model that will not be trained further.
Progress unpack_model(const std::string& bytes, const std::string& name, Weights& model);

}  // namespace dtool::trainer
