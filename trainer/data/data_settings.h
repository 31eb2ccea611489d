// SPDX-License-Identifier: MIT
// The [data] table of an experiment whose workload learns from samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/csv_data.h"
#include "trainer/data/data_files.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

/// The keys about files: which files, where they are, where they come from, and how a CSV file is
/// read.
struct FileSettings {
  /// Empty: the data is drawn, or a function's. idx and mnist: as `mnist_files()`; csv: for
  /// training, and perhaps for the test; npy: inputs, and perhaps targets, of both.
  std::vector<DataFile> files;
  DataPlace place;
  CsvSettings csv;
  TargetKind targets{};  ///< the kind of the targets, for csv, npy and python
  /// The paths of `files`, set after they have been provided.
  std::vector<std::filesystem::path> paths;
};

// Facts about MNIST: http://yann.lecun.com/exdb/mnist/.

/// MNIST's four files with their names on mirrors: training images and labels, test images and
/// labels.
std::vector<DataFile> mnist_files();

enum class DataSource { mnist, idx, csv, npy, python, digits, random };

enum class RandomTargets { noise, linear };

struct DataSettings {
  DataSource source{};
  FileSettings files;    ///< mnist, idx, csv, npy
  std::string iterator;  ///< python: `module:function`, which gives the batches of a set
  std::string python;    ///< python: the program
  std::int64_t train_samples{};
  std::int64_t test_samples{};
  std::int64_t features{};         ///< random
  RandomTargets random_targets{};  ///< random
  std::uint64_t drawing_seed{};
  /// Batches gathered ahead by a thread; 0: none. Absent: the default of `batches_ahead`.
  std::optional<std::int64_t> prefetch;
};

/// Reads the data settings that a model of this kind can have. Throws UsageError.
DataSettings read_data(TomlReader& reader, ModelKind kind, const ModelSettings& model);

/// Fills exactly so many bytes. Throws UsageError if so many do not come.
using ByteSource = std::function<void(void* into, std::size_t size)>;

/// Starts Python for a set, `train` or `test`: the arrays of its inputs and its targets, without
/// the latter if `arrays` is 1, as numpy.save writes them. Throws std::system_error if it cannot be
/// started. (It is a process as environments have: trainer/environments/environment_worker.cpp.)
ByteSource open_iterator(const DataSettings& settings, const std::string& set, int arrays);

}  // namespace dtool::trainer
