// SPDX-License-Identifier: MIT
// One function per kind of schedule.
#include "trainer/settings/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dtool::trainer {
namespace {

/// `share` 0 is `from`, 1 is `to`.
double between(double from, double to, double share) {
  return from + (to - from) * std::clamp(share, 0.0, 1.0);
}

/// So that the sum of many equal fractions counts as the whole that it is meant to be.
constexpr double kRounding = 1e-9;

double after_steps(const ScheduleSettings& schedule, double time) {
  return std::pow(schedule.gamma, std::floor(time / schedule.every + kRounding));
}

double after_milestones(const ScheduleSettings& schedule, double time) {
  const auto passed =
      std::count_if(schedule.milestones.begin(), schedule.milestones.end(),
                    [&](double milestone) { return time + kRounding >= milestone; });
  return std::pow(schedule.gamma, static_cast<double>(passed));
}

double along_pieces(const ScheduleSettings& schedule, double time) {
  double factor = 1;
  for (const LinearPiece& piece : schedule.pieces) {
    factor = between(piece.from, piece.to, time / piece.length);
    if (time < piece.length) break;
    time -= piece.length;
  }
  return factor;
}

double along_cosine(const ScheduleSettings& schedule, double time) {
  const double share = std::clamp(
      (time - schedule.warm_up) / std::max(schedule.length - schedule.warm_up, kRounding), 0.0,
      1.0);
  return schedule.end + (1 - schedule.end) * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

double without_warm_up(const ScheduleSettings& schedule, double time) {
  switch (schedule.kind) {
    case ScheduleKind::step:
      return after_steps(schedule, time);
    case ScheduleKind::multi_step:
      return after_milestones(schedule, time);
    case ScheduleKind::linear:
      return between(1, schedule.end, time / schedule.length);
    case ScheduleKind::multi_linear:
      return along_pieces(schedule, time);
    case ScheduleKind::cosine:
      return along_cosine(schedule, time);
    case ScheduleKind::constant:
      break;
  }
  return 1;
}

}  // namespace

double learning_rate_factor(const ScheduleSettings& schedule, double time) {
  const double factor = without_warm_up(schedule, time);
  if (time >= schedule.warm_up) return factor;
  return factor * between(schedule.warm_up_start, 1, time / schedule.warm_up);
}

}  // namespace dtool::trainer
