// Makes the training and test sets of a model from CSV tables: which columns it sees, which it is
// to predict, which rows test it.
#pragma once

#include <cstdint>
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
  std::vector<std::string> inputs{};   ///< columns; none: all but the targets
  std::vector<std::string> targets{};  ///< columns; none: the last
  double test_share = 0;               ///< of the rows, where no file has the test's
  std::uint64_t split_seed = 0;        ///< draws them
  Standardise standardise{};
};

struct CsvSet {
  std::int64_t rows = 0;
  std::vector<float> inputs;          ///< [rows, inputs]
  std::vector<float> values;          ///< [rows, targets] of TargetKind::values
  std::vector<std::int64_t> classes;  ///< [rows] of TargetKind::classes
};

struct CsvSets {
  CsvSet train;
  CsvSet test;
  std::vector<std::string> inputs;   ///< their columns
  std::vector<std::string> targets;  ///< their columns
  std::int64_t classes = 0;          ///< the highest training class + 1; no test class is higher
  std::vector<double> means;         ///< of each input over the training rows; if standardised
  std::vector<double> deviations;    ///< the same; 1 for an input that never changes
};

/// Standardised inputs are (x - mean) / deviation, the test's with the training rows' figures.
/// Throws UsageError naming the place for a column that is not there, a class that is no whole
/// number from 0, a test class that no training row has reached, and a number too large for a
/// float.
CsvSets make_csv_sets(const CsvTable& train, const std::optional<CsvTable>& test,
                      const CsvSettings& settings, TargetKind kind);

}  // namespace dtool::trainer
