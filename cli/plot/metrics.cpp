// SPDX-License-Identifier: MIT
#include "cli/plot/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/metric_numbers.h"

namespace dtool::cli {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// A line that tells of a step.
struct Record {
  std::string event;
  double step = 0;
  double time = kNoNumber;                                  ///< seconds since 1970
  std::vector<std::pair<std::size_t, double>> values = {};  ///< index of the metric's name
};

/// A stretch in which the run went on, from one `start` line to the next.
struct Stretch {
  double begin = 0;  ///< seconds since 1970
  double end = 0;    ///< of its last line
};

/// Python writes NaN and Infinity, which JSON has not.
std::string without_python_numbers(std::string_view line) {
  std::string text(line);
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at))
      text.replace(at, word.size(), "null");
  }
  return text;
}

nlohmann::json parse_line(std::string_view line) {
  auto json = nlohmann::json::parse(line, nullptr, false);
  if (json.is_discarded())
    json = nlohmann::json::parse(without_python_numbers(line), nullptr, false);
  return json;
}

class Reader {
 public:
  /// Whether the line could be read.
  bool read(std::string_view line);
  std::vector<Curve> curves() const;
  bool is_trainers() const { return is_trainers_; }

 private:
  std::size_t index_of(const std::string& name);
  double seconds_at(double time) const;

  std::vector<std::string> names_;
  std::vector<Record> records_;
  std::vector<Stretch> stretches_;
  double lines_ = 0;
  bool is_trainers_ = false;
};

/// The running time until then. A late line belongs to the stretch that contains its time.
double Reader::seconds_at(double time) const {
  if (std::isnan(time)) return kNoNumber;
  double seconds = 0;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    if (i + 1 == stretches_.size() || time < stretches_[i + 1].begin)
      return seconds + std::max(time - stretches_[i].begin, 0.0);
    seconds += stretches_[i].end - stretches_[i].begin;
  }
  return kNoNumber;
}

std::size_t Reader::index_of(const std::string& name) {
  const auto index = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  if (index == names_.size()) names_.push_back(name);
  return index;
}

bool Reader::read(std::string_view line) {
  const nlohmann::json json = parse_line(line);
  if (!json.is_object()) return false;
  const std::string event = json.value("event", nlohmann::json("step")).is_string()
                                ? json.value("event", "step")
                                : "step";
  const bool is_start = event == "start";
  const bool is_validation = event == "validation";
  const std::string counted = step_name(json);
  if (!counted.empty() && !json[counted].is_number()) return false;
  ++lines_;
  // A start that names no step is one from nothing; another line without one counts itself.
  const double uncounted = is_start ? 0.0 : lines_;
  Record record{event, counted.empty() ? uncounted : json[counted].get<double>()};
  const auto time = json.find("time");
  if (time != json.end() && time->is_number()) {
    record.time = time->get<double>();
    if (is_start && record.step <= 0) stretches_.clear();  // begun anew
    if (is_start || (stretches_.empty() && !is_validation))
      stretches_.push_back({record.time, record.time});
    if (!is_validation) stretches_.back().end = std::max(stretches_.back().end, record.time);
  }
  if (is_start) {
    is_trainers_ = is_trainers_ || json.contains("world_size");
    // Lines of a separate validation are exempt, whatever their time.
    std::erase_if(records_, [&record](const Record& each) {
      return each.step > record.step && !(each.time > record.time);
    });
    return true;
  }
  for (const auto& [name, value] : metric_numbers(json)) {
    if (name == "event" || name == counted || name == "epoch" || name == "time") continue;
    record.values.emplace_back(index_of(name), value);
  }
  records_.push_back(std::move(record));
  return true;
}

std::vector<Curve> Reader::curves() const {
  std::vector<Curve> by_step;
  for (const std::string& name : names_) by_step.push_back({name, "step", {}, {}});
  std::vector<Curve> by_epoch = by_step;
  for (Curve& curve : by_epoch) curve.event = "epoch";
  std::vector<Record> in_order = records_;
  std::ranges::stable_sort(in_order, {}, &Record::step);
  for (const Record& record : in_order) {
    for (const auto& [name, value] : record.values) {
      Curve& curve = (record.event == "epoch" ? by_epoch : by_step)[name];
      curve.steps.push_back(record.step);
      curve.values.push_back(std::isfinite(value) ? value : kNoNumber);
      curve.seconds.push_back(seconds_at(record.time));
    }
  }
  std::vector<Curve> curves;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const bool steps_tell_more = by_step[i].steps.size() >= by_epoch[i].steps.size();
    Curve& curve = steps_tell_more ? by_step[i] : by_epoch[i];
    if (std::ranges::any_of(curve.seconds, [](double each) { return std::isnan(each); }))
      curve.seconds.clear();
    if (!curve.steps.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

Metrics read_metrics(std::string_view text) {
  Metrics metrics;
  Reader reader;
  std::size_t number = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos || reader.read(line)) continue;
    if (metrics.unread++ == 0) metrics.first_unread = number;
  }
  metrics.curves = reader.curves();
  metrics.is_trainers = reader.is_trainers();
  return metrics;
}

}  // namespace dtool::cli
