// SPDX-License-Identifier: MIT
// Keeps a run's checkpoints, and answers requests for one by signals.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/report/progress_log.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {

enum class Better { higher, lower };

/// All ranks have one, and make the same calls; only rank 0 writes files.
class CheckpointKeeper {
 public:
  /// All arguments must outlive it. Throws UsageError if the model has tensors that no checkpoint
  /// can hold.
  CheckpointKeeper(const Group& group, const CommandLine& options,
                   const CheckpointSettings& settings, std::chrono::seconds collective_timeout,
                   const Weights& model, Optimizer& optimizer, Progress& progress);

  /// Whether a checkpoint is due after the steps since `steps_before`.
  bool is_due(std::int64_t steps_before) const;

  /// Copies the current state, with this workload's `others`, for a checkpoint that is written
  /// while training goes on. The oldest is deleted then.
  void keep(const std::vector<NamedTensor>& others = {});

  /// The step of the last checkpoint; -1: none.
  std::int64_t kept_step() const { return kept_step_; }

  /// Remembers `score` if it is the best so far; then also keeps the model as the best, if wanted.
  void take_score(double score, Better better);

  /// Whether the model can be resumed from: no parameter is infinite or NaN.
  bool is_sound() const;

  /// Answers a request by `signal`, now that the state of this step is kept: as soon as it is on
  /// the disk the log and waiting ranks are told. For SIGTERM that is waited for, and this process
  /// ends if it was terminated. For rank 0, as are the rest. Throws std::system_error.
  void answer(int signal, ProgressLog& log);

  /// The same where the model is not fit to be kept.
  void refuse(int signal, ProgressLog& log);

  /// Tells `log` of what has been written since the last call. Throws std::system_error if a write
  /// has failed.
  void tell(ProgressLog& log);

  /// Waits until all is on the disk, and tells.
  void finish(ProgressLog& log);

 private:
  Snapshot snapshot(const std::vector<NamedTensor>& others);
  void end_request(int signal, std::int64_t step, const char* outcome, ProgressLog& log) const;

  const Group& group_;
  const CommandLine& options_;
  const CheckpointSettings& settings_;
  const Weights& model_;
  Optimizer& optimizer_;
  Progress& progress_;
  std::int64_t kept_step_ = -1;
  std::int64_t written_step_ = -1;

  struct Request {
    int signal;
    std::int64_t step;
  };
  std::vector<Request> requests_;  ///< not yet answered
  std::weak_ptr<const TrainedState> copied_;
  std::int64_t copied_step_ = -1;           ///< the step of that copy
  std::optional<CheckpointWriter> writer_;  ///< rank 0's
};

/// Whether a multiple of `every` lies after `before` and up to `now`; 0 has no multiples.
bool pass_multiple(std::int64_t before, std::int64_t now, std::int64_t every);

}  // namespace dtool::trainer
