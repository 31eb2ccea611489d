// SPDX-License-Identifier: MIT
// All three outputs get the same numbers, so that they agree. The bar shows those of the last log
// point, since newer ones would cost an exchange between the ranks.
#include "trainer/report/progress_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

// ASCII only and without colours: the same on every terminal, so NO_COLOR needs no support.

namespace {

constexpr std::size_t kLongestBar = 40;  // cells, without the brackets
constexpr std::size_t kShortestBar = 6;  // fits into 80 columns with all fields of a usual run

/// Only ever full when all is done.
std::string cells(double done, std::size_t count) {
  const double part = std::clamp(done, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(part * static_cast<double>(count));
  if (full >= count) return std::string(count, '=');
  return std::string(full, '=') + '>' + std::string(count - full - 1, ' ');
}

/// `3:12`, `1:00:05`
std::string as_clock(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  return seconds < 3600
             ? fmt::format("{}:{:02}", seconds / 60, seconds % 60)
             : fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/// `9876`, `224k`, `1.5M`
std::string in_short(double number) {
  if (number < 1e4) return fmt::format("{:.0f}", number);
  if (number < 1e6) return fmt::format("{:.0f}k", number / 1e3);
  return fmt::format("{:.1f}M", number / 1e6);
}

/// After the bar, in the order of the line; the first to be left out has the least `worth`.
struct Field {
  std::string text;
  int worth = 0;
};

std::vector<Field> fields_of(const BarState& state) {
  std::vector<Field> fields = {{fmt::format("step {}", state.step), 4}};
  if (state.averages) {
    fields.push_back({fmt::format("loss {:.4f}", state.averages->loss), 3});
    fields.push_back({fmt::format("lr {:g}", state.averages->learning_rate), 0});
    fields.push_back({"samples/s " + in_short(state.averages->samples_per_second), 1});
  }
  if (state.left) fields.push_back({as_clock(*state.left) + " left", 2});
  return fields;
}

std::size_t width_of(const std::vector<Field>& fields, std::size_t gap) {
  std::size_t width = 0;
  for (const Field& each : fields) width += gap + each.text.size();
  return width;
}

}  // namespace

std::string progress_bar(const BarState& state, int columns) {
  const auto width = static_cast<std::size_t>(std::max(columns, 0));
  const std::string head = state.epoch.empty() ? "" : fmt::format("epoch {} ", state.epoch);
  std::vector<Field> fields = fields_of(state);
  const auto least = [&](std::size_t gap) {
    return head.size() + kShortestBar + 2 + width_of(fields, gap);
  };
  while (fields.size() > 1 && least(1) > width) {
    fields.erase(std::min_element(fields.begin(), fields.end(), [](const Field& a, const Field& b) {
      return a.worth < b.worth;
    }));
  }
  const std::size_t gap = least(2) <= width ? 2 : 1;
  std::string line = head;
  if (least(gap) <= width) {
    const std::size_t room = width - least(gap) + kShortestBar;
    line += fmt::format("[{}]", cells(state.done, std::min(room, kLongestBar)));
  } else if (!line.empty()) {
    line.pop_back();
  }
  for (const Field& each : fields) line += std::string(gap, ' ') + each.text;
  return line.substr(0, width);
}

std::string in_words(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds / 3600 % 24);
}

std::optional<std::chrono::seconds> time_left(std::chrono::duration<double> elapsed,
                                              double done_at_start, double done_now) {
  const double done = done_now - done_at_start;
  if (!(done > 0)) return std::nullopt;
  const double seconds = std::ceil(elapsed.count() * std::max(0.0, 1 - done_now) / done);
  if (!(seconds < 1e10)) return std::nullopt;
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

}  // namespace dtool::trainer
