// SPDX-License-Identifier: MIT
// The keys of an experiment's [data] table about files: which files, where they are, where they
// come from, and how a CSV file is read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/csv_data.h"
#include "trainer/data/data_files.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

enum class FileSource { mnist, idx, csv };

struct FileSettings {
  std::vector<DataFile> files;  ///< empty: the data is drawn. idx and mnist: as `mnist_files()`;
                                ///< csv: for training, and perhaps for the test
  DataPlace place;
  CsvSettings csv;
  TargetKind targets{};  ///< the kind of the targets, for csv
  /// The paths of `files`, set after they have been provided.
  std::vector<std::filesystem::path> paths;
};

/// Reads a source's keys. Throws UsageError with file, line and key.
FileSettings read_file_settings(TomlReader& reader, FileSource source);

/// For drawn data: refuses every key about files.
void refuse_file_settings(const TomlReader& reader);

// Facts about MNIST: http://yann.lecun.com/exdb/mnist/.

/// MNIST's four files with their names on mirrors: training images and labels, test images and
/// labels.
std::vector<DataFile> mnist_files();

/// URLs of folders that hold them.
std::vector<std::string> mnist_mirrors();

}  // namespace dtool::trainer
