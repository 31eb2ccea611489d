// SPDX-License-Identifier: MIT
#include "trainer/settings/train_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

Stage read_stage(TomlReader& reader, const std::string& prefix, const Stage& standard) {
  Stage stage = standard;
  stage.batch_size = reader.integer(prefix + "batch_size", standard.batch_size, {1, 10'000'000});
  stage.accumulate = reader.integer(prefix + "accumulate", standard.accumulate, {1, 1'000'000});
  stage.repeats = reader.integer(prefix + "repeats", standard.repeats, {1, 1'000'000});
  return stage;
}

/// Without stages, `train` is the only one; with them, it has what they do not say.
std::vector<Stage> read_stages(TomlReader& reader, const OptimizerSettings& optimizer) {
  Stage standard = read_stage(reader, "train.", {0, 0, 64, 1, 1, optimizer.learning_rate});
  const auto count = reader.count_tables("stage");
  if (count == 0) {
    standard.epochs = reader.integer("train.epochs", 5, {1, 1'000'000});
    return {standard};
  }
  reader.refuse_if_given("train.epochs", "does not go together with [[stage]], which has its own");
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < count; ++i) {
    const auto prefix = fmt::format("stage[{}].", i);
    Stage stage = read_stage(reader, prefix, standard);
    stage.epochs = reader.integer_if_given(prefix + "epochs", {1, 1'000'000}).value_or(0);
    stage.steps = reader.integer_if_given(prefix + "steps", {1, kMany}).value_or(0);
    if ((stage.epochs == 0) == (stage.steps == 0)) {
      throw UsageError(fmt::format("{}: stage[{}] needs a length: epochs or steps, one of them",
                                   reader.where(fmt::format("stage[{}]", i)), i));
    }
    stage.learning_rate =
        reader.number(prefix + "learning_rate", optimizer.learning_rate, {1e-12, 1e3});
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace

TrainSettings read_train(TomlReader& reader, const OptimizerSettings& optimizer) {
  TrainSettings train;
  train.stages = read_stages(reader, optimizer);
  train.batch_per = choose<BatchPer>(
      reader, "train.batch_size_per",
      {{"rank", BatchPer::rank}, {"machine", BatchPer::machine}, {"run", BatchPer::run}});
  train.evaluate_every = reader.integer("train.evaluate_every", 1, {0, 1'000'000});
  train.precision = read_precision(reader, "train.precision");
  train.cuda_graph = read_cuda_graph(reader, "train.cuda_graph");
  return train;
}

std::int64_t batch_of_rank(std::int64_t batch_size, BatchPer per, int local_world_size,
                           int world_size) {
  const int parts = per == BatchPer::rank      ? 1
                    : per == BatchPer::machine ? local_world_size
                                               : world_size;
  if (batch_size % parts == 0) return batch_size / parts;
  throw UsageError(
      fmt::format("a batch of {} samples a {} cannot be dealt out evenly to {} ranks", batch_size,
                  per == BatchPer::machine ? "machine" : "run", parts),
      fmt::format("{} or {} can", batch_size / parts * parts, (batch_size / parts + 1) * parts));
}

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
