// SPDX-License-Identifier: MIT
// Keys of other kinds are refused, since they would have no effect.
#include "trainer/settings/schedule_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

constexpr Limits<double> kTime = {0.0, 1e9};
constexpr Limits<double> kPositive = {1e-9, 1e9};
constexpr Limits<double> kFactor = {0.0, 1e6};

/// The length of the whole run in the schedule's unit; 0 if the stages use the other unit.
double length_of(const std::vector<Stage>& stages, ScheduleUnit unit) {
  double length = 0;
  for (const Stage& each : stages) {
    const auto part = unit == ScheduleUnit::epochs ? each.epochs : each.steps;
    if (part == 0) return 0;
    length += static_cast<double>(part);
  }
  return length;
}

double read_length(TomlReader& reader, const std::vector<Stage>& stages, ScheduleUnit unit) {
  const double whole = length_of(stages, unit);
  if (whole == 0 && !reader.has("schedule.length")) {
    throw UsageError(fmt::format("{}: schedule.length is missing", reader.where("schedule.kind")),
                     "the run's own length is not known in the schedule's unit: say it, or change "
                     "schedule.unit");
  }
  return reader.number("schedule.length", whole, kPositive);
}

std::vector<LinearPiece> read_pieces(TomlReader& reader) {
  const auto count = reader.count_tables("schedule.pieces");
  if (count == 0) {
    throw UsageError(
        fmt::format("{}: schedule.pieces is missing", reader.where("schedule.kind")),
        "such as pieces = [{length = 3, from = 1.0, to = 0.9}, {length = 2, from = 0.9, to = 0}]");
  }
  std::vector<LinearPiece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const auto prefix = fmt::format("schedule.pieces[{}].", i);
    LinearPiece piece;
    piece.length = reader.number(prefix + "length", 1, kPositive);
    piece.from = reader.number(prefix + "from", pieces.empty() ? 1 : pieces.back().to, kFactor);
    piece.to = reader.number(prefix + "to", 0, kFactor);
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace

ScheduleSettings read_schedule(TomlReader& reader, const std::vector<Stage>& stages) {
  ScheduleSettings schedule;
  schedule.kind = choose<ScheduleKind>(reader, "schedule.kind",
                                       {{"constant", ScheduleKind::constant},
                                        {"step", ScheduleKind::step},
                                        {"multi_step", ScheduleKind::multi_step},
                                        {"linear", ScheduleKind::linear},
                                        {"multi_linear", ScheduleKind::multi_linear},
                                        {"cosine", ScheduleKind::cosine}});
  schedule.unit = choose<ScheduleUnit>(
      reader, "schedule.unit", {{"epochs", ScheduleUnit::epochs}, {"steps", ScheduleUnit::steps}});
  const bool step = schedule.kind == ScheduleKind::step;
  const bool multi_step = schedule.kind == ScheduleKind::multi_step;
  const bool decay = schedule.kind == ScheduleKind::linear || schedule.kind == ScheduleKind::cosine;
  const auto only_for = [&](bool mine, const char* key, const char* kinds) {
    if (!mine) reader.refuse_if_given(key, fmt::format("is only for schedule.kind = {}", kinds));
    return mine;
  };
  if (only_for(step, "schedule.every", "\"step\"")) {
    schedule.every = reader.number("schedule.every", 1, kPositive);
  }
  if (only_for(multi_step, "schedule.milestones", "\"multi_step\"")) {
    schedule.milestones = reader.numbers("schedule.milestones", {}, kTime);
  }
  if (only_for(step || multi_step, "schedule.gamma", "\"step\" and \"multi_step\"")) {
    schedule.gamma = reader.number("schedule.gamma", 0.1, kFactor);
  }
  if (only_for(decay, "schedule.length", "\"linear\" and \"cosine\"")) {
    schedule.length = read_length(reader, stages, schedule.unit);
  }
  if (only_for(decay, "schedule.end", "\"linear\" and \"cosine\"")) {
    schedule.end = reader.number("schedule.end", 0, kFactor);
  }
  if (only_for(schedule.kind == ScheduleKind::multi_linear, "schedule.pieces",
               "\"multi_linear\"")) {
    schedule.pieces = read_pieces(reader);
  }
  schedule.warm_up = reader.number("schedule.warm_up", 0, kTime);
  schedule.warm_up_start = reader.number("schedule.warm_up_start", 0, {0.0, 1.0});
  return schedule;
}

// One function per kind of schedule.

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
