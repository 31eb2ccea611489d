// What a run leaves to be resumed from, and how it answers who asks for it by a signal.
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

/// All ranks have one, and call it alike; files are rank 0's.
class CheckpointKeeper {
 public:
  /// All arguments must outlive it.
  CheckpointKeeper(const Group& group, const Options& options, const CheckpointSettings& settings,
                   const Weights& model, Optimizer& optimizer, Progress& progress);

  /// Whether the steps since `steps_before` ask for one.
  bool is_due(std::int64_t steps_before) const;

  /// Writes the checkpoint of now, with `others` of this workload's, and removes the oldest. Throws
  /// std::system_error.
  void keep(const std::vector<NamedTensor>& others = {});

  /// Of the last one; -1 before it.
  std::int64_t kept_step() const { return kept_step_; }

  /// Remembers `score` where it is the best so far, and where wanted keeps the model as best.pt.
  void take_score(double score, Better better);

  /// Whether the model can be resumed from: no parameter is infinite or no number.
  bool is_sound() const;

  /// After `signal` asked for a checkpoint: tells `outcome` in the log, and whoever waits for it;
  /// ends this process where it was terminated. For rank 0.
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

/// Whether the steps after `before` and up to `now` have a multiple of `every` among them; 0 has
/// none.
bool pass_multiple(std::int64_t before, std::int64_t now, std::int64_t every);

}  // namespace dtool::trainer
