// Plain ATen operations: the loop around them runs thousands of times a second.
#include "trainer/classifier.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace dtool::trainer {

Perceptron::Perceptron(std::int64_t pixels, const std::vector<std::int64_t>& hidden,
                       std::int64_t classes) {
  std::vector<std::int64_t> widths = {pixels};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(classes);
  for (std::size_t i = 1; i < widths.size(); ++i) {
    layers_.push_back(
        register_module(fmt::format("fc{}", i), torch::nn::Linear(widths[i - 1], widths[i])));
  }
}

at::Tensor Perceptron::forward(at::Tensor images) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    images = at::linear(images, layers_[i]->weight, layers_[i]->bias);
    if (i + 1 < layers_.size()) images = at::relu(images);
  }
  return images;
}

Classifier::Classifier(DataSets data, const ModelSettings& settings, at::Device device)
    : data_(std::move(data)),
      model_(std::make_shared<Perceptron>(data_.train.images.size(1), settings.hidden,
                                          data_.classes)) {
  model_->to(device);
}

at::Tensor Classifier::loss(const at::Tensor& samples) {
  const at::Tensor scores = model_->forward(data_.train.images.index_select(0, samples));
  return at::cross_entropy_loss(scores, data_.train.labels.index_select(0, samples));
}

std::int64_t Classifier::count_correct(Range range) {
  constexpr std::int64_t kChunk = 4096;  // bounds the memory, not the result
  const c10::NoGradGuard no_gradients;
  std::int64_t correct = 0;
  for (auto begin = range.begin; begin < range.end; begin += kChunk) {
    const auto end = std::min(begin + kChunk, range.end);
    const at::Tensor answers = model_->forward(data_.test.images.slice(0, begin, end)).argmax(1);
    correct += answers.eq(data_.test.labels.slice(0, begin, end)).sum().item<std::int64_t>();
  }
  return correct;
}

}  // namespace dtool::trainer
