// SPDX-License-Identifier: MIT
// The [model] table of an experiment whose workload learns from samples, and the layers that it
// describes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

// The layers of a built-in model as an experiment describes them, and the shapes between them.
// Without LibTorch, so that `--check` and the launcher can use it.

/// One sample's dimensions: `[features]` or `[channels, rows, columns]`.
using Shape = std::vector<std::int64_t>;

enum class LayerKind {
  linear,
  convolution,
  batch_norm,
  group_norm,
  dropout,
  max_pool,
  average_pool,
  relu,
  gelu,
  tanh,
  sigmoid,
  skip,  ///< keeps its input for a later `add`; these may be nested
  swap,  ///< goes on with the kept values, and keeps its input in their place
  add,   ///< adds what is kept
};

struct Layer {
  LayerKind kind{};
  std::string words;       ///< text from the experiment, for messages
  std::int64_t width = 0;  ///< outputs of a linear layer, channels of a convolution
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 0;  ///< of a group norm's channels
  double share = 0;         ///< the share of the values that dropout sets to zero
};

/// Reads `linear 50`, `conv 8 3 [stride 1] [padding 0]` (8 channels, kernel 3 x 3), `max_pool 2
/// [stride 2] [padding 0]`, `average_pool 2 [stride 2]`, `batch_norm`, `group_norm 4`, `dropout
/// 0.5`, `relu`, `gelu`, `tanh`, `sigmoid`, `skip`, `swap`, `add`. Throws UsageError naming the
/// words.
Layer parse_layer(const std::string& words);

/// The shapes before each of the layers, and the one after the last, for a sample of shape `in`; a
/// linear layer flattens its input. Throws UsageError if such a sample does not fit a layer, or
/// what is kept is not added.
std::vector<Shape> shapes_along(const std::vector<Layer>& layers, const Shape& in);

/// Multiply-adds of the forward pass for one sample of shape `in`.
std::int64_t multiply_adds(const Layer& layer, const Shape& in);

/// The number of values in a sample.
std::int64_t count_values(const Shape& shape);

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
