// SPDX-License-Identifier: MIT
// The numbers in a line of a metrics.jsonl, which any program may have written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace dtool::cli {

/// The numbers of a JSON object, those of inner ones as `eval.accuracy`; NaN for null, which stands
/// for a number that JSON has not. At most 1,000, and at most 8 levels deep.
std::vector<std::pair<std::string, double>> metric_numbers(const nlohmann::json& object);

/// The key that counts the steps of a line: `step`, `global_step`, `iteration`, `iter` or `epoch`;
/// empty: it has none.
std::string step_name(const nlohmann::json& object);

}  // namespace dtool::cli
