// SPDX-License-Identifier: MIT
// All three outputs get the same numbers, so that they agree. The bar shows those of the last log
// point, since newer ones would cost an exchange between the ranks.
#include "trainer/report/progress_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::trainer {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// `test accuracy 0.9667`
std::string words_of(const Scores::value_type& score) {
  std::string name = score.first;
  std::replace(name.begin(), name.end(), '_', ' ');
  return fmt::format("{} {:.4f}", name, score.second);
}

/// Empty if there are none.
std::string epoch_of(const Position& position) {
  if (position.epoch == 0) return "";
  return position.epochs == 0 ? fmt::format("{}", position.epoch)
                              : fmt::format("{}/{}", position.epoch, position.epochs);
}

std::string end_of_line(std::optional<std::chrono::seconds> left) {
  return left && left->count() > 0 ? fmt::format("  {} left", in_words(*left)) : "";
}

MetricsLine first_line(const RunStart& start) {
  MetricsLine line = {{"event", "start"},
                      {"time", now()},
                      {"seed", start.seed},
                      {"world_size", std::int64_t{start.world_size}},
                      {"step", start.step}};
  if (!start.resumed_from.empty()) line.emplace_back("resumed_from", start.resumed_from);
  return line;
}

Scalars numbers_of(const Report& report) {
  Scalars numbers = {{"loss", report.loss},
                     {"learning_rate", report.learning_rate},
                     {"samples_per_s", report.samples_per_second}};
  numbers.insert(numbers.end(), report.scores.begin(), report.scores.end());
  numbers.insert(numbers.end(), report.details.begin(), report.details.end());
  return numbers;
}

}  // namespace

ProgressLog::ProgressLog(const std::filesystem::path& output_dir, TensorBoard tensorboard,
                         const RunStart& start)
    : file_(output_dir / "metrics.jsonl"), done_at_start_(start.done) {
  if (tensorboard == TensorBoard::on) events_.emplace(output_dir / "tensorboard", start.step + 1);
  file_.append(first_line(start));
}

void ProgressLog::append(const std::string& event, const Position& position, Scalars numbers) {
  MetricsLine line = {{"event", event}, {"time", now()}};
  if (position.epoch > 0) line.emplace_back("epoch", position.epoch);
  line.emplace_back("step", position.step);
  line.insert(line.end(), numbers.begin(), numbers.end());
  file_.append(line);
  if (!events_) return;
  for (auto& [tag, number] : numbers) tag.insert(0, event + "/");
  events_->add(position.step, numbers);
}

std::optional<std::chrono::seconds> ProgressLog::left(double done) const {
  return time_left(std::chrono::steady_clock::now() - begin_, done_at_start_, done);
}

void ProgressLog::tick(const Position& position) {
  console_.draw([&](int columns) {
    return progress_bar(
        {epoch_of(position), position.step, position.done, averages_, left(position.done)},
        columns);
  });
}

void ProgressLog::step(const Report& report) {
  averages_ = {report.loss, report.learning_rate, report.samples_per_second};
  if (!console_.has_bar()) {
    std::string line =
        fmt::format("step {}  loss {:.4f}  lr {:g}  samples/s {:.0f}", report.position.step,
                    report.loss, report.learning_rate, report.samples_per_second);
    if (report.position.epoch > 0)
      line.insert(0, fmt::format("epoch {}  ", epoch_of(report.position)));
    for (const auto& each : report.scores) line += "  " + words_of(each);
    console_.line(line + end_of_line(left(report.position.done)));
  }
  append("step", report.position, numbers_of(report));
}

void ProgressLog::epoch(const Report& report) {
  std::string line = fmt::format("epoch {} done  step {}  loss {:.4f}  samples/s {:.0f}",
                                 epoch_of(report.position), report.position.step, report.loss,
                                 report.samples_per_second);
  for (const auto& each : report.scores) line += "  " + words_of(each);
  if (!console_.has_bar()) line += end_of_line(left(report.position.done));
  console_.line(line);
  append("epoch", report.position, numbers_of(report));
}

void ProgressLog::validation(const Position& position, const Scores& scores) {
  std::string line = fmt::format("step {}", position.step);
  for (const auto& each : scores) line += "  " + words_of(each);
  console_.line(line);
  append("validation", position, scores);
}

void ProgressLog::note(const std::string& text) {
  console_.line(text);
}

void ProgressLog::finish(const Scores& scores) {
  console_.line(words_of(scores.back()));
}

}  // namespace dtool::trainer
