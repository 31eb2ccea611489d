// SPDX-License-Identifier: MIT
// The content of a checkpoint: everything that the rest of a run depends on, as a safetensors file.
// docs/experiment.md has its names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/report/written_file.h"
#include "trainer/training/checkpoint_reader.h"
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

/// Throws UsageError if `model` has tensors of a type that checkpoints cannot hold.
void check_types(const Weights& model);

/// Gives the file's bytes to `sink`, without a copy of them. Any thread may call it. The same
/// snapshot always has the same bytes.
void write(const Snapshot& snapshot, const Sink& sink);

/// The parts that are returned rather than restored in place.
struct Restored {
  Progress progress;
  std::vector<NamedTensor> others;
};

/// Restores model and optimizer from a checkpoint, on all ranks. Throws UsageError if it belongs to
/// another model or optimizer, before anything is restored.
Restored restore(CheckpointReader& from, const Weights& model, Optimizer& optimizer);

/// The same for a model that will not be trained further.
Progress restore_model(CheckpointReader& from, const Weights& model);

}  // namespace dtool::trainer
