// SPDX-License-Identifier: MIT
// Built-in models are a list of layers; a TorchScript module brings its own.
#include "trainer/settings/model_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>
#include <sstream>
#include <utility>

#include "killfiles/nearest.h"
#include "ssh/wire/words.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

std::vector<Layer> read_layers(TomlReader& reader, ModelKind kind) {
  std::vector<Layer> layers;
  if (reader.has("model.layers")) {
    reader.refuse_if_given("model.hidden", "does not go together with model.layers");
    const auto texts = reader.texts("model.layers", {});
    with_place(reader.where("model.layers"), [&] {
      for (const auto& words : texts) layers.push_back(parse_layer(words));
    });
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

// Parses layers by one table of their kinds.

namespace {

struct LayerWord {
  const char* name;
  LayerKind kind;
  const char* example;
};

constexpr LayerWord kLayerWords[] = {
    {"linear", LayerKind::linear, "linear 50"},
    {"conv", LayerKind::convolution, "conv 8 3"},
    {"batch_norm", LayerKind::batch_norm, "batch_norm"},
    {"group_norm", LayerKind::group_norm, "group_norm 4"},
    {"dropout", LayerKind::dropout, "dropout 0.5"},
    {"max_pool", LayerKind::max_pool, "max_pool 2"},
    {"average_pool", LayerKind::average_pool, "average_pool 2"},
    {"relu", LayerKind::relu, "relu"},
    {"gelu", LayerKind::gelu, "gelu"},
    {"tanh", LayerKind::tanh, "tanh"},
    {"sigmoid", LayerKind::sigmoid, "sigmoid"},
    {"skip", LayerKind::skip, "skip"},
    {"swap", LayerKind::swap, "swap"},
    {"add", LayerKind::add, "add"},
};

/// The words after the layer's name, taken one by one.
class Words {
 public:
  explicit Words(const std::string& line) : line_(line) {
    std::istringstream stream(line);
    for (std::string word; stream >> word;) words_.push_back(word);
  }

  bool empty() const { return next_ == words_.size(); }
  std::string take() { return empty() ? "" : words_[next_++]; }

  template <class Number>
  Number number(const char* what, Number least, Number most) {
    const std::string word = take();
    const auto value = host::parse_number<Number>(word);
    if (value && *value >= least && *value <= most) return *value;
    throw UsageError(fmt::format("layer '{}': {} must be from {} to {}, not '{}'", line_, what,
                                 least, most, word));
  }

 private:
  const std::string& line_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

const LayerWord& kind_named(const std::string& name, const std::string& line) {
  std::vector<std::string> names;
  for (const LayerWord& each : kLayerWords) {
    if (each.name == name) return each;
    names.emplace_back(each.name);
  }
  const auto near = killfiles::nearest(name, names);
  throw UsageError(fmt::format("layer '{}': no layer is called '{}'", line, name),
                   near ? fmt::format("did you mean '{}'?", *near)
                        : fmt::format("one of {}", fmt::join(names, ", ")));
}

constexpr std::int64_t kWidest = 1 << 24;
constexpr std::int64_t kLargestKernel = 1024;

void read_sizes(Layer& layer, Words& words) {
  switch (layer.kind) {
    case LayerKind::linear:
      layer.width = words.number<std::int64_t>("the number of outputs", 1, kWidest);
      break;
    case LayerKind::convolution:
      layer.width = words.number<std::int64_t>("the number of channels", 1, kWidest);
      layer.kernel = words.number<std::int64_t>("the kernel", 1, kLargestKernel);
      break;
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      layer.kernel = words.number<std::int64_t>("the window", 1, kLargestKernel);
      layer.stride = layer.kernel;
      break;
    case LayerKind::group_norm:
      layer.groups = words.number<std::int64_t>("the number of groups", 1, kWidest);
      break;
    case LayerKind::dropout:
      layer.share = words.number<double>("the share", 0, 0.999);
      break;
    default:
      break;
  }
}

std::int64_t side_after(const Layer& layer, std::int64_t side) {
  return (side + 2 * layer.padding - layer.kernel) / layer.stride + 1;
}

bool has_window(LayerKind kind) {
  return kind == LayerKind::convolution || kind == LayerKind::max_pool ||
         kind == LayerKind::average_pool;
}

/// Half of a pool's window at most may be padding.
std::int64_t most_padding(const Layer& layer) {
  if (layer.kind == LayerKind::max_pool) return layer.kernel / 2;
  return layer.kind == LayerKind::convolution ? kLargestKernel : 0;
}

std::string text_of(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

/// The shape after a layer that looks at no kept values.
Shape shape_after(const Layer& layer, const Shape& in) {
  if (layer.kind == LayerKind::linear) return {layer.width};
  if (layer.kind == LayerKind::group_norm && in[0] % layer.groups != 0) {
    throw UsageError(
        fmt::format("layer '{}' cannot divide {} channels equally", layer.words, in[0]));
  }
  if (!has_window(layer.kind)) return in;
  if (in.size() != 3) {
    throw UsageError(
        fmt::format("layer '{}' needs images, but gets {} values", layer.words, count_values(in)));
  }
  const Shape out = {layer.kind == LayerKind::convolution ? layer.width : in[0],
                     side_after(layer, in[1]), side_after(layer, in[2])};
  if (in[1] + 2 * layer.padding < layer.kernel || in[2] + 2 * layer.padding < layer.kernel) {
    throw UsageError(
        fmt::format("layer '{}' is too large for images of {} x {}", layer.words, in[1], in[2]));
  }
  return out;
}

}  // namespace

Layer parse_layer(const std::string& line) {
  Words words(line);
  const std::string name = words.take();
  const LayerWord& kind = kind_named(name, line);
  Layer layer;
  layer.kind = kind.kind;
  layer.words = line;
  read_sizes(layer, words);
  while (!words.empty()) {
    const std::string word = words.take();
    if (word == "stride" && has_window(layer.kind)) {
      layer.stride = words.number<std::int64_t>("the stride", 1, kLargestKernel);
    } else if (word == "padding" && most_padding(layer) > 0) {
      layer.padding = words.number<std::int64_t>("the padding", 0, most_padding(layer));
    } else {
      throw UsageError(fmt::format("layer '{}': '{}' is one word too many", line, word),
                       fmt::format("such as \"{}\"", kind.example));
    }
  }
  return layer;
}

std::vector<Shape> shapes_along(const std::vector<Layer>& layers, const Shape& in) {
  std::vector<Shape> shapes = {in};
  std::vector<Shape> kept;
  for (const Layer& each : layers) {
    Shape shape = shapes.back();
    const bool takes = each.kind == LayerKind::swap || each.kind == LayerKind::add;
    if (takes && kept.empty()) {
      throw UsageError(fmt::format("layer '{}' has no 'skip' before it", each.words));
    }
    if (each.kind == LayerKind::skip) {
      kept.push_back(shape);
    } else if (each.kind == LayerKind::swap) {
      std::swap(kept.back(), shape);
    } else if (each.kind == LayerKind::add) {
      if (kept.back() != shape) {
        throw UsageError(fmt::format("layer 'add' gets {} values, but {} are kept", text_of(shape),
                                     text_of(kept.back())));
      }
      kept.pop_back();
    } else {
      shape = shape_after(each, shape);
    }
    shapes.push_back(std::move(shape));
  }
  if (!kept.empty()) throw UsageError("layer 'skip' has no 'add' after it");
  return shapes;
}

std::int64_t multiply_adds(const Layer& layer, const Shape& in) {
  if (layer.kind == LayerKind::linear) return count_values(in) * layer.width;
  if (layer.kind != LayerKind::convolution) return count_values(in);
  return count_values(shape_after(layer, in)) * in[0] * layer.kernel * layer.kernel;
}

std::int64_t count_values(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace dtool::trainer
