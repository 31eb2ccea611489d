// SPDX-License-Identifier: MIT
// The layers of the known encoders are written as a user would write them in `encoder_layers`.
#include "trainer/reinforcement/policy_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Lines = std::vector<std::string>;

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

/// Mnih et al. 2015, https://doi.org/10.1038/nature14236; `part` 2 has half of its widths.
Lines nature(int part) {
  return {fmt::format("conv {} 8 stride 4", 32 / part), "relu",
          fmt::format("conv {} 4 stride 2", 64 / part), "relu",
          fmt::format("conv {} 3", 64 / part),          "relu",
          fmt::format("linear {}", 512 / part),         "relu"};
}

/// That of MiniGrid's starter files, https://github.com/lcswillems/rl-starter-files: its pictures
/// have 7 x 7 cells.
Lines small() {
  return {"conv 16 2", "relu", "max_pool 2", "conv 32 2", "relu", "conv 64 2", "relu"};
}

/// The deep one of Espeholt et al. 2018, https://arxiv.org/abs/1802.01561, without its memory.
Lines impala() {
  Lines lines;
  for (const int width : {16, 32, 32}) {
    const std::string conv = fmt::format("conv {} 3 padding 1", width);
    append(lines, {conv, "max_pool 3 stride 2 padding 1"});
    for (int i = 0; i < 2; ++i) append(lines, {"skip", "relu", conv, "relu", conv, "add"});
  }
  append(lines, {"relu", "linear 256", "relu"});
  return lines;
}

/// A block of two convolutions of He et al. 2016, https://arxiv.org/abs/1512.03385.
Lines residual_block(int width, int stride, bool is_wider, const std::string& norm) {
  Lines lines = {"skip",
                 fmt::format("conv {} 3 stride {} padding 1", width, stride),
                 norm,
                 "relu",
                 fmt::format("conv {} 3 padding 1", width),
                 norm};
  if (is_wider) {
    append(lines, {"swap", fmt::format("conv {} 1 stride {}", width, stride), norm});
  }
  append(lines, {"add", "relu"});
  return lines;
}

/// As DD-PPO's (https://arxiv.org/abs/1911.00357 and habitat-baselines), whose `width` is 32. Large
/// pictures are halved first.
Lines resnet18(int width, const Shape& picture) {
  const std::string norm = fmt::format("group_norm {}", width / 2);
  Lines lines;
  if (picture[1] >= 128 && picture[2] >= 128) lines.emplace_back("average_pool 2");
  append(lines, {fmt::format("conv {} 7 stride 2 padding 3", width), norm, "relu",
                 "max_pool 3 stride 2 padding 1"});
  for (int stage = 0; stage < 4; ++stage) {
    const int wide = width << stage;
    append(lines, residual_block(wide, stage == 0 ? 1 : 2, stage > 0, norm));
    append(lines, residual_block(wide, 1, false, norm));
  }
  append(lines, {"conv 128 3 padding 1", "group_norm 1", "relu", "linear 512", "relu"});
  return lines;
}

struct Encoder {
  const char* name;
  Lines (*lines)(const Shape& picture);
};

const Encoder kEncoders[] = {
    {"nature", [](const Shape&) { return nature(1); }},
    {"nature_half", [](const Shape&) { return nature(2); }},
    {"impala", [](const Shape&) { return impala(); }},
    {"resnet18", [](const Shape& picture) { return resnet18(64, picture); }},
    {"resnet18_half", [](const Shape& picture) { return resnet18(32, picture); }},
    {"small", [](const Shape&) { return small(); }},
};

std::vector<Layer> parsed(const Lines& lines) {
  std::vector<Layer> layers;
  for (const std::string& each : lines) layers.push_back(parse_layer(each));
  return layers;
}

std::vector<Layer> layers_of(const std::string& name, const Shape& picture) {
  for (const Encoder& each : kEncoders) {
    if (each.name == name) return parsed(each.lines(picture));
  }
  return {};
}

Lines names() {
  Lines all;
  for (const Encoder& each : kEncoders) all.emplace_back(each.name);
  return all;
}

bool fits(const std::vector<Layer>& layers, const Shape& picture) {
  try {
    shapes_along(layers, picture);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

/// The layers of `encoder_layers`, which must do the same in training and in use.
std::vector<Layer> read_encoder_layers(TomlReader& reader) {
  reader.refuse_if_given("model.encoder", "does not go together with model.encoder_layers");
  const auto texts = reader.texts("model.encoder_layers", {});
  return with_place(reader.where("model.encoder_layers"), [&] {
    auto layers = parsed(texts);
    for (const Layer& each : layers) {
      if (each.kind != LayerKind::batch_norm && each.kind != LayerKind::dropout) continue;
      throw UsageError(
          fmt::format("layer '{}' is not for policies, which act as they learn", each.words),
          "such as \"group_norm 4\"");
    }
    return layers;
  });
}

std::int64_t multiply_adds(const std::vector<Layer>& layers, const Shape& in) {
  const std::vector<Shape> shapes = shapes_along(layers, in);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) sum += multiply_adds(layers[i], shapes[i]);
  return sum;
}

}  // namespace

PolicySettings read_policy(TomlReader& reader, const PolicySettings& standard) {
  constexpr Limits<std::int64_t> kWidths = {1, 65536};
  PolicySettings policy = standard;
  if (reader.has("model.encoder_layers")) {
    policy.encoder_layers = read_encoder_layers(reader);
  } else {
    policy.encoder = reader.word("model.encoder", names(), standard.encoder);
  }
  policy.layers = reader.integers("model.layers", standard.layers, kWidths);
  policy.activation =
      parse_layer(reader.word("model.activation", {"tanh", "relu"}, standard.activation.words));
  reader.read("model.embedding", policy.embedding, kWidths);
  const std::vector<std::string> memories = {"none", "gru", "lstm"};
  const std::string memory =
      reader.word("model.memory", memories, memories[static_cast<std::size_t>(standard.memory)]);
  policy.memory = memory == "none"  ? PolicyMemory::none
                  : memory == "gru" ? PolicyMemory::gru
                                    : PolicyMemory::lstm;
  reader.read("model.hidden", policy.hidden, kWidths);
  reader.read("model.separate_critic", policy.separate_critic);
  if (policy.separate_critic && policy.memory != PolicyMemory::none) {
    throw UsageError(fmt::format("{}: a critic of its own goes with model.memory = \"none\" only",
                                 reader.where("model.separate_critic")));
  }
  reader.read("model.normalise_observations", policy.normalise_observations);
  return policy;
}

std::vector<Layer> layers_of_picture(const PolicySettings& settings, const Observed& picture) {
  if (picture.shape.size() != 3) {
    throw UsageError(
        fmt::format("the observation {} has pixels of shape [{}], not of a picture: "
                    "[channels, rows, columns]",
                    picture.name, fmt::join(picture.shape, ", ")));
  }
  if (!settings.encoder_layers.empty()) {
    with_place("model.encoder_layers: the observation " + picture.name,
               [&] { shapes_along(settings.encoder_layers, picture.shape); });
    return settings.encoder_layers;
  }
  std::vector<Layer> layers = layers_of(settings.encoder, picture.shape);
  if (fits(layers, picture.shape)) return layers;
  Lines fitting;
  for (const std::string& each : names()) {
    if (fits(layers_of(each, picture.shape), picture.shape)) fitting.push_back(each);
  }
  std::int64_t least = 1;
  while (!fits(layers, {picture.shape[0], least, least})) ++least;
  throw UsageError(
      fmt::format("the observation {} has pictures of {} x {} pixels, but "
                  "model.encoder \"{}\" needs at least {} x {}",
                  picture.name, picture.shape[1], picture.shape[2], settings.encoder, least, least),
      fmt::format("one that fits: \"{}\"", fmt::join(fitting, "\", \"")));
}

std::vector<Layer> layers_of_numbers(const PolicySettings& settings) {
  std::vector<Layer> layers;
  for (const std::int64_t width : settings.layers) {
    layers.push_back(parse_layer(fmt::format("linear {}", width)));
    layers.push_back(settings.activation);
  }
  return layers;
}

std::int64_t multiply_adds(const PolicySettings& settings, const EnvironmentSpec& spec) {
  std::int64_t codes = 0, numbers = 0, sum = 0, width = 0;
  for (const Observed& each : spec.observations) {
    if (each.kind == ObservedKind::pixels) return 0;
    (each.kind == ObservedKind::codes ? codes : numbers) += each.values();
  }
  if (codes > 0) {
    sum += codes * settings.embedding;  // a sum of rows, one a byte
    width += settings.embedding;
  }
  if (numbers > 0) {
    sum += multiply_adds(layers_of_numbers(settings), {numbers});
    width += settings.layers.empty() ? numbers : settings.layers.back();
  }
  if (settings.separate_critic) sum *= 2;
  if (settings.memory != PolicyMemory::none) {
    const std::int64_t gates = settings.memory == PolicyMemory::gru ? 3 : 4;
    sum += gates * settings.hidden * (width + settings.hidden);
    width = settings.hidden;
  }
  return sum + width * (spec.actions.parameters() + 1);
}

}  // namespace dtool::trainer
