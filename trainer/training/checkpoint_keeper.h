// Writes a run's checkpoints, and answers requests for one by signals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/report/progress_log.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

enum class Better { higher, lower };

/// All ranks have one, and make the same calls; only rank 0 writes files.
class CheckpointKeeper {
 public:
  /// All arguments must outlive it.
  CheckpointKeeper(const Group& group, const Options& options, const CheckpointSettings& settings,
                   const Weights& model, Optimizer& optimizer, Progress& progress);

  /// Whether a checkpoint is due after the steps since `steps_before`.
  bool is_due(std::int64_t steps_before) const;

  /// Writes a checkpoint of the current state, with this workload's `others`, and deletes the
  /// oldest. Throws std::system_error.
  void keep(const std::vector<NamedTensor>& others = {});

  /// The step of the last checkpoint; -1: none.
  std::int64_t kept_step() const { return kept_step_; }

  /// Remembers `score` if it is the best so far; then also keeps the model as best.pt, if wanted.
  void take_score(double score, Better better);

  /// Whether the model can be resumed from: no parameter is infinite or NaN.
  bool is_sound() const;

  /// Answers a request by `signal`: reports `outcome` in the log and to waiting ranks; ends this
  /// process if it was terminated. For rank 0.
  void answer(int signal, const std::string& outcome, ProgressLog& log) const;

 private:
  const Group& group_;
  const Options& options_;
  const CheckpointSettings& settings_;
  const Weights& model_;
  Optimizer& optimizer_;
  Progress& progress_;
  std::int64_t kept_step_ = -1;
};

/// Whether a multiple of `every` lies after `before` and up to `now`; 0 has no multiples.
bool pass_multiple(std::int64_t before, std::int64_t now, std::int64_t every);

}  // namespace dtool::trainer
