// SPDX-License-Identifier: MIT
// Makes a model's training and test sets from CSV tables: its input columns, its target columns,
// and its test rows.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/csv.h"

namespace dtool::trainer {

/// What a sample's targets are: a class, numbers, or nothing.
enum class TargetKind { classes, values, none };

enum class Standardise { no, yes };

struct CsvSettings {
  CsvFormat format{};
  std::vector<std::string> inputs{};   ///< columns; empty: all but the targets
  std::vector<std::string> targets{};  ///< columns; empty: the last one
  double test_share = 0;  ///< the test's share of the rows, if no separate file has the test rows
  std::uint64_t split_seed = 0;  ///< chooses them
  Standardise standardise{};
};

/// Its numbers' memory comes from `memory`.
struct CsvSet {
  explicit CsvSet(std::pmr::memory_resource* memory)
      : inputs(memory), values(memory), classes(memory) {}

  std::int64_t rows = 0;
  std::pmr::vector<float> inputs;          ///< [rows, inputs]
  std::pmr::vector<float> values;          ///< [rows, targets] of TargetKind::values
  std::pmr::vector<std::int64_t> classes;  ///< [rows] of TargetKind::classes
};

struct CsvSets {
  explicit CsvSets(std::pmr::memory_resource* memory) : train(memory), test(memory) {}

  CsvSet train;
  CsvSet test;
  std::vector<std::string> inputs;   ///< their columns
  std::vector<std::string> targets;  ///< their columns
  std::int64_t classes = 0;          ///< the highest training class + 1; no test class is higher
  /// The mean of each input over the training rows; set if standardised.
  std::vector<double> means;
  /// The deviation of each input over the training rows; set if standardised; 1 for an input that
  /// never changes.
  std::vector<double> deviations;
};

/// Standardised inputs are (x - mean) / deviation; the test's use the mean and deviation of the
/// training rows. Reads a table once, and the training rows' once more to standardise; the sets'
/// own memory is all that grows with the rows. Throws UsageError as CsvTable::read does, and naming
/// the place for a missing column, a class that is not a whole number from 0, a test class above
/// all training classes, and a number too large for a float.
CsvSets make_csv_sets(const CsvTable& train, const std::optional<CsvTable>& test,
                      const CsvSettings& settings, TargetKind kind,
                      std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace dtool::trainer
