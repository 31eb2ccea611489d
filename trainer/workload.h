// What the training loop has to know about the thing being trained.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "trainer/sampler.h"

namespace dtool::trainer {

/// A model with its data. All ranks hold the same; the loop deals the samples out.
struct Workload {
  virtual ~Workload() = default;

  virtual torch::nn::Module& model() = 0;
  virtual std::int64_t training_samples() const = 0;
  virtual std::int64_t test_samples() const = 0;

  /// The mean loss (a scalar) over the training samples that `samples` ([batch], int64) numbers.
  virtual at::Tensor loss(const at::Tensor& samples) = 0;

  /// How many test samples of `range` the model classifies rightly.
  virtual std::int64_t count_correct(Range range) = 0;
};

}  // namespace dtool::trainer
