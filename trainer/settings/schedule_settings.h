// SPDX-License-Identifier: MIT
// The [schedule] table of an experiment whose workload learns from samples, and the factor that it
// gives for each step.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

// How the learning rate changes during a run.

enum class ScheduleKind { constant, step, multi_step, linear, multi_linear, cosine };

/// The unit of a schedule. Epochs are fractional: each step advances by its share of the epoch.
enum class ScheduleUnit { epochs, steps };

/// A straight line from one factor to another, over `length` units.
struct LinearPiece {
  double length = 0;
  double from = 1;
  double to = 1;
};

/// Times are in `unit`, factors multiply the learning rate.
struct ScheduleSettings {
  ScheduleKind kind{};
  ScheduleUnit unit{};
  double every = 1;                      ///< step: multiplies by `gamma` after each such interval
  std::vector<double> milestones = {};   ///< multi_step: multiplies by `gamma` at each
  double gamma = 0.1;                    ///< step, multi_step
  double length = 0;                     ///< linear, cosine: when `end` is reached
  double end = 0;                        ///< linear, cosine
  std::vector<LinearPiece> pieces = {};  ///< multi_linear; after the last piece its `to` stays
  double warm_up = 0;                    ///< the factor first grows linearly over this length
  double warm_up_start = 0;              ///< the share of the factor from which this growth starts
};

/// The factor at `time`, from 0 on. Step and multi_step are torch.optim.lr_scheduler's StepLR and
/// MultiStepLR. Linear, multi_linear and cosine start at 1; the first two are AllenAct's
/// LinearDecay and MultiLinearDecay. Cosine is Loshchilov and Hutter's annealing without restarts
/// (https://arxiv.org/abs/1608.03983, equation 5), after the warm-up.
double learning_rate_factor(const ScheduleSettings& schedule, double time);

/// Reads the keys of the chosen kind. If `schedule.length` is missing, `stages` give the length of
/// the run. Throws UsageError.
ScheduleSettings read_schedule(TomlReader& reader, const std::vector<Stage>& stages);

}  // namespace dtool::trainer
