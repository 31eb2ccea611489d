// The content of a checkpoint: everything that the rest of a run depends on. LibTorch's archive
// format, which torch.jit.load reads in Python.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>

#include "trainer/adam.h"

namespace dtool::trainer {

/// How far a run has come, and what it was started with.
struct Progress {
  std::int64_t epochs = 0;  ///< finished ones
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  int world_size = 1;
};

/// The archive's bytes: the model's parameters and buffers, the optimizer's state, `progress` and
/// the state of the default random generator.
std::string pack(const torch::nn::Module& model, Adam& optimizer, const Progress& progress);

/// Puts everything back in place and returns the progress; `name` is for messages. Throws
/// UsageError when the bytes are no such archive or belong to a model of another shape.
Progress unpack(const std::string& bytes, const std::string& name, torch::nn::Module& model,
                Adam& optimizer);

}  // namespace dtool::trainer
