// SPDX-License-Identifier: MIT
// The training loop of every workload: step by step, and once in a while a line, an evaluation, a
// checkpoint, an answer to a signal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/report/progress_log.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"
#include "trainer/training/checkpoint_keeper.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

// What a run trains: the part of training that differs between workloads. `train` below is the loop
// around it. A workload's folder derives a `Workload` and provides it through a `kRunner`.

/// The data that all parts of a rank's run share. The referenced objects outlive the run.
struct Run {
  const Experiment& experiment;
  const CommandLine& options;
  const Meeting& meeting;
  const Group& group;
};

/// The result of a call of `Workload::advance`.
struct Advance {
  /// The signal that has come: on rank 0, and on all ranks if a checkpoint needs all of them; 0:
  /// none.
  int request = 0;
  bool evaluation_is_due = false;
  /// A checkpoint is due in addition to those of `checkpoint.every_steps`.
  bool checkpoint_is_due = false;
};

/// What is due after a call of `Workload::advance`.
struct Due {
  bool line = false;
  bool evaluation = false;
  bool checkpoint = false;
};

struct Evaluation {
  Scores scores;  ///< the last one is the score; empty if the run is to end sooner
  Better better = Better::higher;
};

/// The workload of one run. All ranks have one and make the same calls; the log is rank 0's, and
/// null on the others.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual Weights& model() = 0;
  virtual Optimizer& optimizer() = 0;

  /// How many stages the experiment has.
  virtual std::size_t stages() const = 0;

  /// Restores what a checkpoint has besides `model`, `optimizer` and `progress`.
  virtual void restore(const std::vector<NamedTensor>& /*others*/) {}

  /// This workload's own tensors for a checkpoint. If there are any, this is a collective
  /// operation.
  virtual std::vector<NamedTensor> others() { return {}; }

  /// Called once, before the first step and after resuming.
  virtual void begin() = 0;

  virtual bool is_over() const = 0;
  virtual Position position() const = 0;

  /// Trains until the next moment at which a line, an evaluation or a checkpoint is possible, and
  /// counts it in `progress`. `asked` gives rank 0 the signal that has come, if any, once.
  virtual Advance advance(const std::function<int()>& asked, ProgressLog* log) = 0;

  /// Checks the loss of the steps since the last call, if something that is due depends on it, and
  /// writes their line. Throws RunFailed if the loss is no longer a number.
  virtual void tell(const Due& due, ProgressLog* log) = 0;

  /// Evaluates the model on data that it was not trained on. A collective operation.
  virtual Evaluation evaluate(ProgressLog* log) = 0;

  /// Called after `tell`, and after the evaluation if one was due; `scores` are those of the last
  /// evaluation.
  virtual void close(const Due& /*due*/, const Scores& /*scores*/, ProgressLog* /*log*/) {}

  /// Called after an evaluation or a checkpoint, whose time does not count as training.
  virtual void restart_clock() = 0;

  Progress progress;
};

/// How a folder's workloads run.
struct WorkloadRunner {
  /// Called before the ranks are connected, so it may be slow. Throws UsageError.
  void (*prepare)(Experiment& experiment, const Meeting& meeting);

  /// The run itself, on all ranks; the default generator is seeded. Throws UsageError, RunFailed.
  void (*run)(const Run& run);

  /// Plays and shows an episode with a checkpoint's network, if the settings have episodes.
  void (*show_episode)(const Experiment& experiment, const CommandLine& options) = nullptr;
};

/// The runner of `experiment.workload`.
const WorkloadRunner& runner_of(const Experiment& experiment);

/// Trains `workload` on all ranks, from the checkpoint in the options if there is one. Rank 0
/// writes the lines and files. Throws UsageError if that checkpoint is missing or does not fit,
/// RunFailed if the loss is no longer a number.
void train(const Run& run, Workload& workload);

}  // namespace dtool::trainer
