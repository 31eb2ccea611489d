// SPDX-License-Identifier: MIT
// The [data] table of an experiment whose workload learns from samples.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/data/file_settings.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

enum class DataSource { mnist, idx, csv, digits, random };

enum class RandomTargets { noise, linear };

struct DataSettings {
  DataSource source{};
  FileSettings files;  ///< mnist, idx, csv
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

}  // namespace dtool::trainer
