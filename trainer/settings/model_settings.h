// The [model] table of an experiment whose workload learns from samples.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/layers.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

enum class ModelKind { regression, classifier, autoencoder, torchscript };

/// What the model's outputs are compared with.
enum class Loss { cross_entropy, mse, l1, huber, bce };

/// What a model is to give back: the samples' labels or values, or the samples themselves.
enum class Target { targets, inputs };

enum class Activation { none, relu, sigmoid };

enum class SyncBatchNorm { no, yes };

struct ModelSettings {
  std::vector<Layer> layers;  ///< all but the output layer, first to last
  Activation output_activation{};
  SyncBatchNorm sync_batch_norm{};
  std::string file;   ///< torchscript: the exported module
  Shape input_shape;  ///< torchscript: of one sample; empty: the data's own
  Loss loss{};
  Target target{};
};

/// Reads the keys that a model of this kind has. Throws UsageError.
ModelSettings read_model(TomlReader& reader, ModelKind kind);

}  // namespace dtool::trainer
