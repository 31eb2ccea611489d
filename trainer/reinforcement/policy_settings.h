// SPDX-License-Identifier: MIT
// The network of a policy as an experiment's [model] table describes it. Without LibTorch, so that
// `--check` and the launcher can use it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/reinforcement/environments.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

/// What a policy knows of the steps before: nothing, or what a recurrent layer keeps.
enum class PolicyMemory { none, gru, lstm };

/// An observation's codes, numbers and pictures each go through an encoder. Side by side, the
/// results go through the memory, if any, to the actions' parameters and the value.
struct PolicySettings {
  std::string encoder = "nature";               ///< the name of a picture's layers
  std::vector<Layer> encoder_layers = {};       ///< those of the experiment, instead
  std::vector<std::int64_t> layers = {64, 64};  ///< widths of the layers for numbers
  Layer activation = parse_layer("tanh");       ///< it follows each of these
  std::int64_t embedding = 64;                  ///< values of the encoded codes
  PolicyMemory memory = PolicyMemory::none;
  std::int64_t hidden = 128;     ///< values of the memory
  bool separate_critic = false;  ///< whether the critic has layers of its own, or the actor's
  bool normalise_observations = false;
  Precision precision = Precision::float32;  ///< the encoders', which `read_policy` does not read
};

/// Reads [model]; `standard` has what the file omits. Throws UsageError.
PolicySettings read_policy(TomlReader& reader, const PolicySettings& standard = {});

/// The layers through which a picture, an observation of kind pixels, goes. Throws UsageError with
/// the sizes and the encoders that fit if it is too small for them.
std::vector<Layer> layers_of_picture(const PolicySettings& settings, const Observed& picture);
/// Those for numbers.
std::vector<Layer> layers_of_numbers(const PolicySettings& settings);

/// Multiply-adds of the forward pass for one observation, by which threads are counted. With
/// pictures 0: their convolutions are to have one thread.
std::int64_t multiply_adds(const PolicySettings& settings, const EnvironmentSpec& spec);

}  // namespace dtool::trainer
