// SPDX-License-Identifier: MIT
// Built-in models are a list of layers; a TorchScript module brings its own.
#include "trainer/settings/model_settings.h"

#include <fmt/format.h>

#include "trainer/settings/choice.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

std::vector<Layer> read_layers(TomlReader& reader, ModelKind kind) {
  std::vector<Layer> layers;
  if (reader.has("model.layers")) {
    reader.refuse_if_given("model.hidden", "does not go together with model.layers");
    for (const auto& words : reader.texts("model.layers", {})) {
      try {
        layers.push_back(parse_layer(words));
      } catch (const UsageError& mistake) {
        throw UsageError(fmt::format("{}: {}", reader.where("model.layers"), mistake.what()),
                         mistake.hint);
      }
    }
    return layers;
  }
  std::vector<std::int64_t> standard = {50};
  if (kind == ModelKind::regression) standard = {};
  if (kind == ModelKind::autoencoder) standard = {128, 128, 128};
  for (const auto width : reader.integers("model.hidden", standard, {1, 1 << 24})) {
    layers.push_back(parse_layer(fmt::format("linear {}", width)));
    layers.push_back(parse_layer("relu"));
  }
  return layers;
}

Loss read_loss(TomlReader& reader, ModelKind kind) {
  const std::vector<Choice<Loss>> distances = {
      {"mse", Loss::mse}, {"l1", Loss::l1}, {"huber", Loss::huber}};
  switch (kind) {
    case ModelKind::classifier:
      reader.refuse_if_given("model.loss", "of a classifier is always cross_entropy");
      return Loss::cross_entropy;
    case ModelKind::regression:
      return choose(reader, "model.loss", distances);
    case ModelKind::autoencoder: {
      auto choices = distances;
      choices.push_back({"bce", Loss::bce});
      return choose(reader, "model.loss", choices);
    }
    case ModelKind::torchscript:
      break;
  }
  auto choices = distances;
  choices.push_back({"bce", Loss::bce});
  choices.push_back({"cross_entropy", Loss::cross_entropy});
  return choose(reader, "model.loss", choices, Default::none);
}

ModelSettings read_torchscript(TomlReader& reader) {
  refuse_all(reader,
             {"model.hidden", "model.layers", "model.output_activation", "model.sync_batch_norm"},
             "is not for a torchscript model, which brings its own layers");
  ModelSettings model;
  model.file = reader.text("model.file", "");
  if (model.file.empty()) {
    throw UsageError(fmt::format("{}: model.file is missing", reader.where("model")),
                     "the file that torch.jit.script(model).save(...) wrote");
  }
  model.input_shape = reader.integers("model.input_shape", {}, {1, 1 << 24});
  model.loss = read_loss(reader, ModelKind::torchscript);
  model.target = choose<Target>(reader, "model.target",
                                {{"targets", Target::targets}, {"inputs", Target::inputs}});
  if (model.target == Target::inputs && model.loss == Loss::cross_entropy) {
    throw UsageError(fmt::format("{}: cross_entropy compares with labels, not with the inputs",
                                 reader.where("model.target")));
  }
  return model;
}

}  // namespace

ModelSettings read_model(TomlReader& reader, ModelKind kind) {
  if (kind == ModelKind::torchscript) return read_torchscript(reader);
  refuse_all(reader, {"model.file", "model.input_shape", "model.target"},
             "is only for workload = \"torchscript\"");
  const bool autoencoder = kind == ModelKind::autoencoder;
  ModelSettings model;
  model.layers = read_layers(reader, kind);
  model.loss = read_loss(reader, kind);
  model.target = autoencoder ? Target::inputs : Target::targets;
  if (autoencoder) {
    model.output_activation = choose<Activation>(
        reader, "model.output_activation",
        {{"relu", Activation::relu}, {"sigmoid", Activation::sigmoid}, {"none", Activation::none}});
    if (model.loss == Loss::bce && model.output_activation != Activation::none) {
      throw UsageError(
          fmt::format("{}: loss bce needs model.output_activation = \"none\"",
                      reader.where("model.loss")),
          "it takes the logarithm of a sigmoid of its own, which is exact where two steps are not");
    }
  } else {
    reader.refuse_if_given("model.output_activation", "is only for workload = \"autoencoder\"");
  }
  model.sync_batch_norm =
      reader.boolean("model.sync_batch_norm", true) ? SyncBatchNorm::yes : SyncBatchNorm::no;
  return model;
}

}  // namespace dtool::trainer
