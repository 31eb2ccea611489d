// SPDX-License-Identifier: MIT
#include "cli/plot/comm_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

struct Row {
  std::string operation;  ///< and how many machines a message goes between, if more than one
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

}  // namespace dtool::cli
