// SPDX-License-Identifier: MIT
// Tables hold doubles, so that large numbers with small differences keep their precision when
// standardised.
#include "trainer/data/csv_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "killfiles/nearest.h"
#include "trainer/data/sampler.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr double kMostClasses = 1 << 20;

using Columns = std::vector<std::size_t>;

/// Some rows of a table.
struct Rows {
  const CsvTable& table;
  std::vector<std::int64_t> numbers;
};

std::size_t find_column(const CsvTable& table, const std::string& name, const char* key) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), name);
  if (found != table.columns.end()) {
    return static_cast<std::size_t>(found - table.columns.begin());
  }
  constexpr std::size_t kFew = 8;
  const auto near = killfiles::nearest(name, table.columns);
  throw UsageError(fmt::format("{}: {} has no column '{}'", key, table.file, name),
                   table.columns.size() <= kFew
                       ? fmt::format("its columns are {}", fmt::join(table.columns, ", "))
                   : near ? fmt::format("did you mean '{}'?", *near)
                          : "");
}

Columns find_columns(const CsvTable& table, const std::vector<std::string>& names,
                     const char* key) {
  Columns columns;
  for (const auto& each : names) {
    columns.push_back(find_column(table, each, key));
    if (std::count(columns.begin(), columns.end(), columns.back()) > 1) {
      throw UsageError(fmt::format("{}: column '{}' is named twice", key, each));
    }
  }
  return columns;
}

Columns choose_targets(const CsvTable& table, const CsvSettings& settings, TargetKind kind) {
  if (kind == TargetKind::none) return {};
  Columns columns = find_columns(table, settings.targets, "data.targets");
  if (columns.empty()) columns = {table.columns.size() - 1};
  if (kind == TargetKind::classes && columns.size() > 1) {
    throw UsageError("data.targets: a class is one column");
  }
  return columns;
}

Columns choose_inputs(const CsvTable& table, const CsvSettings& settings, const Columns& targets) {
  const auto is_target = [&](std::size_t column) {
    return std::find(targets.begin(), targets.end(), column) != targets.end();
  };
  Columns columns = find_columns(table, settings.inputs, "data.inputs");
  if (const auto both = std::find_if(columns.begin(), columns.end(), is_target);
      both != columns.end()) {
    throw UsageError(fmt::format("data.inputs: column '{}' is a target", table.columns[*both]));
  }
  if (!columns.empty()) return columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!is_target(i)) columns.push_back(i);
  }
  if (columns.empty()) {
    throw UsageError(fmt::format("{}: has {} column{}, which leaves no input", table.file,
                                 table.columns.size(), table.columns.size() == 1 ? "" : "s"));
  }
  return columns;
}

std::vector<std::string> names_of(const CsvTable& table, const Columns& columns) {
  std::vector<std::string> names;
  for (const auto each : columns) names.push_back(table.columns[each]);
  return names;
}

/// `values` as floats, refused where they do not fit.
float to_float(double value, const Rows& rows, std::int64_t row, std::size_t column) {
  if (std::abs(value) <= std::numeric_limits<float>::max()) return static_cast<float>(value);
  throw UsageError(
      fmt::format("{}: {} is too large to compute with", rows.table.place(row, column), value));
}

std::vector<float> to_floats(const Rows& rows, const Columns& columns,
                             const std::vector<double>& means,
                             const std::vector<double>& deviations) {
  std::vector<float> values;
  values.reserve(rows.numbers.size() * columns.size());
  for (const auto row : rows.numbers) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      double value = rows.table.at(row, columns[i]);
      if (!means.empty()) value = (value - means[i]) / deviations[i];
      values.push_back(to_float(value, rows, row, columns[i]));
    }
  }
  return values;
}

std::vector<std::int64_t> to_classes(const Rows& rows, std::size_t column) {
  std::vector<std::int64_t> classes;
  classes.reserve(rows.numbers.size());
  for (const auto row : rows.numbers) {
    const double value = rows.table.at(row, column);
    if (value < 0 || value >= kMostClasses || value != std::floor(value)) {
      throw UsageError(fmt::format("{}: {} is not a class: they are whole numbers from 0 to {}",
                                   rows.table.place(row, column), value, kMostClasses - 1),
                       "numbers to predict are for workload = \"regression\"");
    }
    classes.push_back(static_cast<std::int64_t>(value));
  }
  return classes;
}

/// Twice over the rows, which loses no digits.
void measure(const Rows& rows, const Columns& columns, CsvSets& sets) {
  const auto count = static_cast<double>(rows.numbers.size());
  sets.means.assign(columns.size(), 0);
  sets.deviations.assign(columns.size(), 0);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    double sum = 0;
    for (const auto row : rows.numbers) sum += rows.table.at(row, columns[i]) / count;
    double squares = 0;
    for (const auto row : rows.numbers) {
      const double difference = rows.table.at(row, columns[i]) - sum;
      squares += difference * difference / count;
    }
    sets.means[i] = sum;
    sets.deviations[i] = squares > 0 ? std::sqrt(squares) : 1;
  }
}

CsvSet make_set(const Rows& rows, const Columns& inputs, const Columns& targets, TargetKind kind,
                const CsvSets& sets) {
  CsvSet set;
  set.rows = static_cast<std::int64_t>(rows.numbers.size());
  set.inputs = to_floats(rows, inputs, sets.means, sets.deviations);
  if (kind == TargetKind::classes) set.classes = to_classes(rows, targets[0]);
  if (kind == TargetKind::values) set.values = to_floats(rows, targets, {}, {});
  return set;
}

/// Draws the test's rows and takes them out of the training's; both stay in the file's order.
Rows draw_test_rows(Rows& train, const CsvSettings& settings) {
  const auto rows = static_cast<std::int64_t>(train.numbers.size());
  if (rows < 2) {
    throw UsageError(
        fmt::format("{}: has one row, too few to train and to test", train.table.file));
  }
  const auto wanted =
      static_cast<std::int64_t>(std::llround(static_cast<double>(rows) * settings.test_share));
  const auto order = training_order(rows, 0, 1, settings.split_seed, 0);
  const auto cut = order.begin() + std::clamp<std::int64_t>(wanted, 1, rows - 1);
  Rows test{train.table, {order.begin(), cut}};
  train.numbers.assign(cut, order.end());
  std::sort(test.numbers.begin(), test.numbers.end());
  std::sort(train.numbers.begin(), train.numbers.end());
  return test;
}

std::vector<std::int64_t> all_rows(const CsvTable& table) {
  std::vector<std::int64_t> numbers(table.lines.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Where the test's columns are: by name, in whatever order.
Columns same_columns(const CsvTable& test, const std::vector<std::string>& names) {
  Columns columns;
  for (const auto& each : names) columns.push_back(find_column(test, each, "data.test_file"));
  return columns;
}

void count_classes(const Rows& test, std::size_t column, CsvSets& sets) {
  sets.classes = *std::max_element(sets.train.classes.begin(), sets.train.classes.end()) + 1;
  for (std::size_t i = 0; i < sets.test.classes.size(); ++i) {
    if (sets.test.classes[i] < sets.classes) continue;
    throw UsageError(fmt::format("{}: class {} is in the test, but no training row is above {}",
                                 test.table.place(test.numbers[i], column), sets.test.classes[i],
                                 sets.classes - 1));
  }
}

}  // namespace

CsvSets make_csv_sets(const CsvTable& train, const std::optional<CsvTable>& test,
                      const CsvSettings& settings, TargetKind kind) {
  const Columns targets = choose_targets(train, settings, kind);
  const Columns inputs = choose_inputs(train, settings, targets);
  CsvSets sets;
  sets.inputs = names_of(train, inputs);
  sets.targets = names_of(train, targets);
  Rows train_rows{train, all_rows(train)};
  const Rows test_rows = test ? Rows{*test, all_rows(*test)} : draw_test_rows(train_rows, settings);
  const Columns test_inputs = same_columns(test_rows.table, sets.inputs);
  const Columns test_targets = same_columns(test_rows.table, sets.targets);
  if (settings.standardise == Standardise::yes) measure(train_rows, inputs, sets);
  sets.train = make_set(train_rows, inputs, targets, kind, sets);
  sets.test = make_set(test_rows, test_inputs, test_targets, kind, sets);
  if (kind == TargetKind::classes) count_classes(test_rows, test_targets[0], sets);
  return sets;
}

}  // namespace dtool::trainer
