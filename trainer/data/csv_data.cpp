// SPDX-License-Identifier: MIT
// Numbers are doubles until they are standardised, so that large ones with small differences keep
// their precision.
#include "trainer/data/csv_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "killfiles/nearest.h"
#include "trainer/data/sampler.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr double kMostClasses = 1 << 20;

using Columns = std::vector<std::size_t>;

std::size_t find_column(const CsvTable& table, const std::string& name, const char* key) {
  const auto found = std::find(table.columns().begin(), table.columns().end(), name);
  if (found != table.columns().end()) {
    return static_cast<std::size_t>(found - table.columns().begin());
  }
  constexpr std::size_t kFew = 8;
  const auto near = killfiles::nearest(name, table.columns());
  throw UsageError(fmt::format("{}: {} has no column '{}'", key, table.file(), name),
                   table.columns().size() <= kFew
                       ? fmt::format("its columns are {}", fmt::join(table.columns(), ", "))
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
  if (columns.empty()) columns = {table.columns().size() - 1};
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
    throw UsageError(fmt::format("data.inputs: column '{}' is a target", table.columns()[*both]));
  }
  if (!columns.empty()) return columns;
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    if (!is_target(i)) columns.push_back(i);
  }
  if (columns.empty()) {
    throw UsageError(fmt::format("{}: has {} column{}, which leaves no input", table.file(),
                                 table.columns().size(), table.columns().size() == 1 ? "" : "s"));
  }
  return columns;
}

std::vector<std::string> names_of(const CsvTable& table, const Columns& columns) {
  std::vector<std::string> names;
  for (const auto each : columns) names.push_back(table.columns()[each]);
  return names;
}

/// Where a table's rows go.
struct Part {
  CsvSet& set;
  Columns inputs;
  Columns targets;
};

/// Whether a row is for the test.
using Chosen = std::vector<bool>;

/// Makes floats and classes of the rows of a table.
class Converter {
 public:
  Converter(const CsvTable& table, TargetKind kind, const CsvSets& sets)
      : table_(table), kind_(kind), sets_(sets) {}

  void append(const CsvRow& row, const Part& part) const;

 private:
  float to_float(double value, const CsvRow& row, std::size_t column) const;
  std::int64_t to_class(const CsvRow& row, std::size_t column) const;

  const CsvTable& table_;
  TargetKind kind_;
  const CsvSets& sets_;  ///< their means and deviations
};

void Converter::append(const CsvRow& row, const Part& part) const {
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    double value = row.at[part.inputs[i]];
    if (!sets_.means.empty()) value = (value - sets_.means[i]) / sets_.deviations[i];
    part.set.inputs.push_back(to_float(value, row, part.inputs[i]));
  }
  if (kind_ == TargetKind::classes) part.set.classes.push_back(to_class(row, part.targets[0]));
  if (kind_ != TargetKind::values) return;
  for (const auto column : part.targets) {
    part.set.values.push_back(to_float(row.at[column], row, column));
  }
}

/// Refuses what does not fit.
float Converter::to_float(double value, const CsvRow& row, std::size_t column) const {
  if (std::abs(value) <= std::numeric_limits<float>::max()) return static_cast<float>(value);
  throw UsageError(
      fmt::format("{}: {} is too large to compute with", table_.place(row.line, column), value));
}

std::int64_t Converter::to_class(const CsvRow& row, std::size_t column) const {
  const double value = row.at[column];
  if (value < 0 || value >= kMostClasses || value != std::floor(value)) {
    throw UsageError(fmt::format("{}: {} is not a class: they are whole numbers from 0 to {}",
                                 table_.place(row.line, column), value, kMostClasses - 1),
                     "numbers to predict are for workload = \"regression\"");
  }
  return static_cast<std::int64_t>(value);
}

/// Means and deviations of the training rows, in one pass: D. E. Knuth, The Art of Computer
/// Programming, volume 2, section 4.2.2, equations 15 and 16. Differences from the mean so far are
/// squared, so that no digits are lost.
void measure(const CsvTable& table, const Chosen& for_test, const Columns& columns, CsvSets& sets) {
  sets.means.assign(columns.size(), 0);
  std::vector<double> squares(columns.size(), 0);
  double count = 0;
  table.read([&](const CsvRow& row) {
    if (for_test[static_cast<std::size_t>(row.number)]) return;
    ++count;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const double difference = row.at[columns[i]] - sets.means[i];
      sets.means[i] += difference / count;
      squares[i] += difference * (row.at[columns[i]] - sets.means[i]);
    }
  });
  for (const double each : squares)
    sets.deviations.push_back(each > 0 ? std::sqrt(each / count) : 1);
}

void reserve(const Part& part, TargetKind kind, std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  part.set.rows = rows;
  part.set.inputs.reserve(count * part.inputs.size());
  if (kind == TargetKind::classes) part.set.classes.reserve(count);
  if (kind == TargetKind::values) part.set.values.reserve(count * part.targets.size());
}

/// Draws the test's rows; both sets stay in the file's order.
Chosen draw_test_rows(const CsvTable& table, const CsvSettings& settings) {
  const auto rows = table.rows();
  if (rows < 2) {
    throw UsageError(fmt::format("{}: has one row, too few to train and to test", table.file()));
  }
  const auto wanted =
      static_cast<std::int64_t>(std::llround(static_cast<double>(rows) * settings.test_share));
  const auto order = training_order(rows, 0, 1, settings.split_seed, 0);
  Chosen chosen(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(wanted, 1, rows - 1); ++i) {
    chosen[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  }
  return chosen;
}

/// Where the test's columns are: by name, in whatever order.
Columns same_columns(const CsvTable& test, const std::vector<std::string>& names) {
  Columns columns;
  for (const auto& each : names) columns.push_back(find_column(test, each, "data.test_file"));
  return columns;
}

/// Reads `table` once more to find the line of row `number` among those `for_test`.
[[noreturn]] void refuse_class(const CsvTable& table, const Chosen& for_test, std::size_t column,
                               std::size_t number, const CsvSets& sets) {
  std::int64_t line = 0;
  std::size_t seen = 0;
  table.read([&](const CsvRow& row) {
    if (for_test[static_cast<std::size_t>(row.number)] && seen++ == number) line = row.line;
  });
  throw UsageError(fmt::format("{}: class {} is in the test, but no training row is above {}",
                               table.place(line, column), sets.test.classes[number],
                               sets.classes - 1));
}

void count_classes(const CsvTable& test, const Chosen& for_test, std::size_t column,
                   CsvSets& sets) {
  sets.classes = *std::max_element(sets.train.classes.begin(), sets.train.classes.end()) + 1;
  for (std::size_t i = 0; i < sets.test.classes.size(); ++i) {
    if (sets.test.classes[i] >= sets.classes) refuse_class(test, for_test, column, i, sets);
  }
}

}  // namespace

CsvSets make_csv_sets(const CsvTable& train, const std::optional<CsvTable>& test,
                      const CsvSettings& settings, TargetKind kind,
                      std::pmr::memory_resource* memory) {
  const Columns targets = choose_targets(train, settings, kind);
  const Columns inputs = choose_inputs(train, settings, targets);
  CsvSets sets(memory);
  sets.inputs = names_of(train, inputs);
  sets.targets = names_of(train, targets);
  const CsvTable& tested = test ? *test : train;
  const Part for_train{sets.train, inputs, targets};
  const Part for_test{sets.test, same_columns(tested, sets.inputs),
                      same_columns(tested, sets.targets)};
  const Chosen drawn =
      test ? Chosen(static_cast<std::size_t>(train.rows())) : draw_test_rows(train, settings);
  const auto rows_drawn = std::count(drawn.begin(), drawn.end(), true);
  reserve(for_train, kind, train.rows() - rows_drawn);
  reserve(for_test, kind, test ? test->rows() : rows_drawn);
  if (settings.standardise == Standardise::yes) measure(train, drawn, inputs, sets);
  train.read([&, converter = Converter(train, kind, sets)](const CsvRow& row) {
    converter.append(row, drawn[static_cast<std::size_t>(row.number)] ? for_test : for_train);
  });
  if (test) {
    test->read([&, converter = Converter(*test, kind, sets)](const CsvRow& row) {
      converter.append(row, for_test);
    });
  }
  if (kind == TargetKind::classes) {
    const Chosen rows = test ? Chosen(static_cast<std::size_t>(test->rows()), true) : drawn;
    count_classes(tested, rows, for_test.targets[0], sets);
  }
  return sets;
}

}  // namespace dtool::trainer
