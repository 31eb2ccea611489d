// How the learning rate changes in the course of a run.
#pragma once

#include <cstdint>
#include <vector>

namespace dtool::trainer {

enum class ScheduleKind { constant, step, multi_step, linear, multi_linear, cosine };

/// What a schedule counts in: epochs go on evenly between their ends, as many as they have steps.
enum class ScheduleUnit { epochs, steps };

/// A straight line: over `length` units from one factor to another.
struct LinearPiece {
  double length = 0;
  double from = 1;
  double to = 1;
};

/// Times are in `unit`, factors multiply the learning rate.
struct ScheduleSettings {
  ScheduleKind kind{};
  ScheduleUnit unit{};
  double every = 1;                      ///< step: `gamma` once more after so much
  std::vector<double> milestones = {};   ///< multi_step: `gamma` once more at each
  double gamma = 0.1;                    ///< step, multi_step
  double length = 0;                     ///< linear, cosine: when `end` is reached
  double end = 0;                        ///< linear, cosine
  std::vector<LinearPiece> pieces = {};  ///< multi_linear; after the last its `to` stays
  double warm_up = 0;                    ///< at first the factor grows evenly over so much
  double warm_up_start = 0;              ///< from this share of it
};

/// The factor at `time`, from 0 on. Step and multi_step are torch.optim.lr_scheduler's StepLR and
/// MultiStepLR; linear, multi_linear and cosine run from 1 and AllenAct's LinearDecay and
/// MultiLinearDecay are the same lines. Cosine is Loshchilov and Hutter's annealing without
/// restarts (https://arxiv.org/abs/1608.03983, equation 5), after the warm-up.
double learning_rate_factor(const ScheduleSettings& schedule, double time);

}  // namespace dtool::trainer
