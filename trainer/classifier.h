// The `classifier` workload: a multilayer perceptron on images.
#pragma once

#include <c10/core/Device.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "trainer/data_set.h"
#include "trainer/workload.h"

namespace dtool::trainer {

/// Linear layers with ReLU between: `pixels` inputs, the hidden widths, one output a class. The
/// layers are called fc1, fc2, ... and begin with PyTorch's usual weights, drawn from the default
/// generator.
class Perceptron : public torch::nn::Module {
 public:
  Perceptron(std::int64_t pixels, const std::vector<std::int64_t>& hidden, std::int64_t classes);

  /// [batch, pixels] to [batch, classes], the unnormalised log-probabilities.
  at::Tensor forward(at::Tensor images);

 private:
  std::vector<torch::nn::Linear> layers_;
};

/// Cross-entropy for training, accuracy for testing.
class Classifier : public Workload {
 public:
  Classifier(DataSets data, const ModelSettings& settings, at::Device device);

  torch::nn::Module& model() override { return *model_; }
  std::int64_t training_samples() const override { return data_.train.size(); }
  std::int64_t test_samples() const override { return data_.test.size(); }
  at::Tensor loss(const at::Tensor& samples) override;
  std::int64_t count_correct(Range range) override;

 private:
  DataSets data_;
  std::shared_ptr<Perceptron> model_;
};

}  // namespace dtool::trainer
