// SPDX-License-Identifier: MIT
#include "cli/plot/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

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

 private:
  std::size_t index_of(const std::string& name);
  double seconds_at(double time) const;

  std::vector<std::string> names_;
  std::vector<Record> records_;
  std::vector<Stretch> stretches_;
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
  if (!json.is_object() || !json.contains("event") || !json["event"].is_string()) return false;
  const bool is_start = json["event"] == "start";
  const bool is_validation = json["event"] == "validation";
  const auto step = json.find("step");
  if (step == json.end() ? !is_start : !step->is_number()) return false;
  // A start that names no step is one from nothing.
  Record record{json["event"], step == json.end() ? 0.0 : step->get<double>()};
  const auto time = json.find("time");
  if (time != json.end() && time->is_number()) {
    record.time = time->get<double>();
    if (is_start && record.step <= 0) stretches_.clear();  // begun anew
    if (is_start || (stretches_.empty() && !is_validation))
      stretches_.push_back({record.time, record.time});
    if (!is_validation) stretches_.back().end = std::max(stretches_.back().end, record.time);
  }
  if (is_start) {
    // Lines of a separate validation are exempt, whatever their time.
    std::erase_if(records_, [&record](const Record& each) {
      return each.step > record.step && !(each.time > record.time);
    });
    return true;
  }
  for (const auto& [name, value] : json.items()) {
    if (name == "event" || name == "step" || name == "epoch" || name == "time") continue;
    if (value.is_number()) record.values.emplace_back(index_of(name), value.get<double>());
    if (value.is_null()) record.values.emplace_back(index_of(name), kNoNumber);
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
  return metrics;
}

}  // namespace dtool::cli
