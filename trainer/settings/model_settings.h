// SPDX-License-Identifier: MIT
// The [model] table of an experiment whose workload learns from samples.
#pragma once

#include <string>
#include <vector>

#include "trainer/settings/layers.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

enum class ModelKind { regression, classifier, autoencoder, torchscript };

/// The comparison of the model's outputs with its targets.
enum class Loss { cross_entropy, mse, l1, huber, bce };

/// What a model has to reproduce: the samples' labels or values, or the samples themselves.
enum class Target { targets, inputs };

enum class Activation { none, relu, sigmoid };

enum class SyncBatchNorm { no, yes };

struct ModelSettings {
  std::vector<Layer> layers;  ///< all except the output layer, first to last
  Activation output_activation{};
  SyncBatchNorm sync_batch_norm{};
  std::string file;   ///< torchscript: the exported module
  Shape input_shape;  ///< torchscript: shape of one sample; empty: the data's own
  Loss loss{};
  Target target{};
};

/// Reads the keys of a model of this kind. Throws UsageError.
ModelSettings read_model(TomlReader& reader, ModelKind kind);

}  // namespace dtool::trainer
