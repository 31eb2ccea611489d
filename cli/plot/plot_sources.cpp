// SPDX-License-Identifier: MIT
#include "cli/plot/plot_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/action.h"
#include "cli/record/recorded.h"
#include "cli/watch/status_answer.h"
#include "killfiles/whole_file.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

constexpr std::string_view kMetricsFile = "metrics.jsonl";
/// Beside it, where another run follows this one and validates its checkpoints.
constexpr std::string_view kValidation = "validation.jsonl";

constexpr std::array kUsualMetrics = {"loss", "learning_rate", "samples_per_s", "test_accuracy"};
/// An agent's: its loss says little of how well it does.
constexpr std::array kAgentsMetrics = {"train_success", "validation_success", "validation_spl",
                                       "samples_per_s"};
/// Of messages between ranks.
constexpr std::array kCommMetrics = {"all_reduce_us", "all_reduce_gb_per_s", "send_recv_us",
                                     "send_recv_gb_per_s"};

/// The line before the file's content.
constexpr std::string_view kHere = "dtool-metrics here";

ssh::Command read_command(const std::string& folder) {
  return ssh::bash(
      fmt::format("folder={0}\n"
                  "[ -e \"$folder/{1}\" ] || exit 0\n"
                  "echo '{3}'\n"
                  "[ ! -e \"$folder/{2}\" ] || cat -- \"$folder/{2}\"\n"
                  "exec cat -- \"$folder/{1}\"\n",
                  ssh::quote_path(folder), kMetricsFile, kValidation, kHere));
}

/// The host answered, and has no such file.
void tell_missing(ssh::HostResult& result, const std::string& folder) {
  result.exit_code = -1;
  result.fail(
      ssh::Failure::local_program, fmt::format("there is no {}/{}", folder, kMetricsFile),
      "the bundled trainer writes it at its first log point; another program has to write one "
      "into $DTOOL_OUTPUT_DIR");
}

}  // namespace

std::vector<PlotSource> read_file_sources(const std::string& file) {
  PlotSource source{file, std::nullopt, {}};
  try {
    const std::filesystem::path path = file;
    const auto validation = path.parent_path() / kValidation;
    std::string text;
    if (path.filename() == kMetricsFile && std::filesystem::exists(validation))
      text = killfiles::read_whole(validation);
    text += killfiles::read_whole(file);
    std::vector<PlotSource> algorithms;
    for (auto& [name, metrics] : read_comm_rows(text))
      algorithms.push_back({name, std::nullopt, std::move(metrics), true});
    if (!algorithms.empty()) return algorithms;
    source.metrics = read_metrics(text);
  } catch (const std::system_error& error) {
    throw UsageError(fmt::format("--file: {}", error.what()));
  }
  const Metrics& metrics = source.metrics;
  if (metrics.curves.empty())
    throw UsageError(
        fmt::format("--file: there are no numbers in {}{}", file,
                    metrics.unread == 0 ? ""
                                        : fmt::format(", whose line {} is no object of metrics",
                                                      metrics.first_unread)),
        R"(a line is as {"step": 1, "loss": 0.5}; a run's file is )"
        "metrics.jsonl in its output folder");
  return {source};
}

PlotSource read_run_source(ssh::Remote& remote, const killfiles::Killfile& killfile) {
  const std::string& folder = killfile.machines.front().output_folder;
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::minutes(5);
  options.on_interrupt = ssh::OnInterrupt::leave;
  PlotSource source{
      killfile.run_id, remote.run({{0, read_command(folder)}}, nobody, options).front(), {}};
  ssh::HostResult& result = *source.result;
  if (!result.ok()) return source;
  if (const auto lines = ssh::behind_mark(result.out, kHere)) {
    source.metrics = read_metrics(*lines);
  } else {
    tell_missing(result, folder);
  }
  result.out.clear();
  return source;
}

std::vector<std::string> known_metrics(const std::vector<PlotSource>& sources) {
  std::vector<std::string> known;
  for (const PlotSource& source : sources) {
    for (const Curve& curve : source.metrics.curves) {
      if (std::ranges::find(known, curve.metric) == known.end()) known.push_back(curve.metric);
    }
  }
  return known;
}

std::vector<std::string> usual_metrics(const std::vector<PlotSource>& sources) {
  const std::vector<std::string> known = known_metrics(sources);
  if (known.empty()) return {};
  const auto is_known = [&known](const char* usual) {
    return std::ranges::find(known, usual) != known.end();
  };
  const bool is_agent = is_known("train_success") || is_known("validation_success");
  std::vector<std::string> usual;
  std::ranges::copy_if(sources.front().is_over_bytes ? kCommMetrics
                       : is_agent                    ? kAgentsMetrics
                                                     : kUsualMetrics,
                       std::back_inserter(usual), is_known);
  // What another program writes is worth seeing, whatever its name.
  constexpr std::size_t kMost = 4;
  const bool is_trainers = is_agent || std::ranges::all_of(sources, [](const PlotSource& each) {
                             return each.metrics.is_trainers || each.is_over_bytes;
                           });
  for (const std::string& each : known) {
    if (usual.size() >= kMost || (is_trainers && !usual.empty())) break;
    if (std::ranges::find(usual, each) == usual.end()) usual.push_back(each);
  }
  return usual;
}

killfiles::Killfile newest_run_with_outputs() {
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    const bool has_outputs = each.killfile && each.killfile->kind == killfiles::RunKind::run &&
                             !each.killfile->machines.empty() &&
                             !each.killfile->machines.front().output_folder.empty();
    if (has_outputs) return *each.killfile;
  }
  throw UsageError(fmt::format("no run with outputs is recorded in {}", killfile_folder().string()),
                   "dtool run starts one; --file takes a metrics.jsonl that is here");
}

namespace {

struct Row {
  /// The operation, and how many machines a message goes between, if more than one.
  std::string operation;
  std::string algorithm;
  double bytes = 0;
  double seconds = 0;
  double gb_per_s = 0;
};

std::optional<Row> read_row(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto has = [&json](const char* key, auto is_it) {
    return json.contains(key) && (json[key].*is_it)();
  };
  const auto text = [&has](const char* key) { return has(key, &nlohmann::json::is_string); };
  const auto number = [&has](const char* key) { return has(key, &nlohmann::json::is_number); };
  if (!text("operation") || !text("algorithm") || !text("ranks") || !number("machines") ||
      !number("bytes") || !number("median_seconds") || !number("bus_gb_per_s"))
    return std::nullopt;
  Row row{json["operation"], json["algorithm"], json["bytes"], json["median_seconds"],
          json["bus_gb_per_s"]};
  const auto machines = json["machines"].get<std::int64_t>();
  if (json["ranks"] != "all" && machines > 1)
    row.operation += "_" + std::to_string(machines) + "_machines";
  return row;
}

void add_point(Metrics& metrics, const std::string& metric, double bytes, double value) {
  auto curve = std::ranges::find(metrics.curves, metric, &Curve::metric);
  if (curve == metrics.curves.end())
    curve = metrics.curves.insert(curve, Curve{metric, "comm", {}, {}});
  curve->steps.push_back(bytes);
  curve->values.push_back(value);
}

}  // namespace

std::vector<std::pair<std::string, Metrics>> read_comm_rows(std::string_view text) {
  std::vector<std::pair<std::string, Metrics>> algorithms;
  while (!text.empty()) {
    const std::optional<Row> row = read_row(host::cut_line(text));
    if (!row || row->bytes <= 0) continue;
    auto found =
        std::ranges::find(algorithms, row->algorithm, &std::pair<std::string, Metrics>::first);
    if (found == algorithms.end()) found = algorithms.insert(found, {row->algorithm, Metrics{}});
    constexpr double kMicro = 1e6;
    add_point(found->second, row->operation + "_us", row->bytes, row->seconds * kMicro);
    add_point(found->second, row->operation + "_gb_per_s", row->bytes, row->gb_per_s);
  }
  return algorithms;
}

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
  double end = 0;    ///< the time of its last line
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
