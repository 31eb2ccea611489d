// SPDX-License-Identifier: MIT
// The content of a checkpoint: everything that the rest of a run depends on, as a safetensors file.
// docs/experiment.md has its names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/command_line.h"
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

// Resumes a run from a checkpoint.

/// The folder in which rank 0 keeps the checkpoints.
std::filesystem::path checkpoints_of(const CommandLine& options);

/// The file that `--checkpoint` names; empty for `auto` if there is none yet. `auto` and `latest`
/// take the newest that is whole, and say which newer ones are not. One of a former format only if
/// there is no other. Throws UsageError if there is no such file, if none is whole, or if there is
/// no checkpoint for `latest`.
std::filesystem::path checkpoint_of(const CommandLine& options);

struct Resumed {
  std::string from;   ///< the file's name on rank 0; empty: `auto` found none
  Progress progress;  ///< the checkpoint's progress, with this run's seed and number of ranks
  int saved_world_size = 1;         ///< the number of ranks of the run that wrote it
  std::vector<NamedTensor> others;  ///< the other tensors of the snapshot
};

/// Loads the checkpoint of `--checkpoint` into `model` and `optimizer` on all ranks. The number of
/// ranks may have changed: the rest of an epoch is dealt out anew. But the samples and their order
/// must be the same, and the checkpoint's stage must be among `stages`. If `--checkpoint auto`
/// finds none, nothing changes. Throws UsageError if there is no such checkpoint, or if it does not
/// fit this run, which `fresh` describes.
Resumed resume_from(const CommandLine& options, const Group& group, Weights& model,
                    Optimizer& optimizer, const Progress& fresh, std::size_t stages);

}  // namespace dtool::trainer
