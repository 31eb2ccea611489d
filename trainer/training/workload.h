// What a run trains: the part of training that differs from workload to workload. training.h has
// the loop around it; a workload's folder derives a `Workload` and offers it by a `kRunner`.
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

/// What all parts of a rank's run are given. The referred outlive the run.
struct Run {
  const Experiment& experiment;
  const Options& options;
  const Meeting& meeting;
  const Group& group;
};

/// What a call of `Workload::advance` has come to.
struct Advance {
  /// The signal that has come, on rank 0, and where a checkpoint takes all ranks on all; 0: none.
  int request = 0;
  bool evaluation_is_due = false;
  bool checkpoint_is_due = false;  ///< beside what `checkpoint.every_steps` says
};

/// What follows a call of `Workload::advance`.
struct Due {
  bool line = false;
  bool evaluation = false;
  bool checkpoint = false;
};

struct Evaluation {
  Scores scores;  ///< the one that counts last
  Better better = Better::higher;
};

/// One run's. All ranks have one and call it alike; the log is rank 0's, and null on the others.
class Workload {
 public:
  virtual ~Workload() = default;

  virtual Weights& model() = 0;
  virtual Optimizer& optimizer() = 0;

  /// How many stages the experiment has.
  virtual std::size_t stages() const = 0;

  /// Takes up what a checkpoint has beside `model`, `optimizer` and `progress`.
  virtual void restore(const std::vector<NamedTensor>& /*others*/) {}

  /// What a checkpoint has to keep of it. A collective operation where it is not empty.
  virtual std::vector<NamedTensor> others() { return {}; }

  /// Called once, before the first step and after what is resumed has been put in place.
  virtual void begin() = 0;

  virtual bool is_over() const = 0;
  virtual Position position() const = 0;

  /// Trains until the next moment at which a line, an evaluation or a checkpoint is possible, and
  /// counts it in `progress`. `asked` gives rank 0 the signal that has come, if any, once.
  virtual Advance advance(const std::function<int()>& asked, ProgressLog* log) = 0;

  /// Checks the loss of the steps since the last call as far as what is due depends on it, and
  /// writes their line. Throws RunFailed if it is no longer a number.
  virtual void tell(const Due& due, ProgressLog* log) = 0;

  /// Tries the model on what it was not trained on. A collective operation.
  virtual Evaluation evaluate(ProgressLog* log) = 0;

  /// After `tell`, and the evaluation where that was due; `scores` are the last one's.
  virtual void close(const Due& /*due*/, const Scores& /*scores*/, ProgressLog* /*log*/) {}

  /// An evaluation or a checkpoint took time that is not the training's.
  virtual void restart_clock() = 0;

  /// The run is over: writes what it leaves beside checkpoints. For rank 0.
  virtual void finish() {}

  Progress progress;
};

/// How a folder's workloads run.
struct WorkloadRunner {
  /// Before the ranks are connected: may take its time. Throws UsageError.
  void (*prepare)(Experiment& experiment, const Meeting& meeting);

  /// The run itself, on all ranks; the default generator is seeded. Throws UsageError, RunFailed.
  void (*run)(const Run& run);

  /// Plays and shows an episode by a checkpoint's network; where the settings have episodes.
  void (*show_episode)(const Experiment& experiment, const Options& options) = nullptr;
};

/// That of `experiment.workload`.
const WorkloadRunner& runner_of(const Experiment& experiment);

}  // namespace dtool::trainer
