// The keys of an experiment's [data] table that are about files: which ones, where they lie, whence
// they come, and how a CSV file is read.
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
  std::vector<DataFile> files;  ///< none: the data is drawn. idx and mnist: as `mnist_files()`;
                                ///< csv: the training's and perhaps the test's
  DataPlace place;
  CsvSettings csv;
  TargetKind targets{};                      ///< of csv
  std::vector<std::filesystem::path> paths;  ///< of `files`, once they have been provided
};

/// Reads a source's keys. Throws UsageError with file, line and key.
FileSettings read_file_settings(TomlReader& reader, FileSource source);

/// For data that is drawn: refuses every key of files.
void refuse_file_settings(const TomlReader& reader);

}  // namespace dtool::trainer
