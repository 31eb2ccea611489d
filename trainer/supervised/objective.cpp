// SPDX-License-Identifier: MIT
// The four kinds of models differ only in their settings.
#include "trainer/supervised/objective.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "trainer/model/loss.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/precision.h"

namespace dtool::trainer {

Objective::Objective(std::unique_ptr<Model> model, DataSets data, const ModelSettings& settings,
                     Precision precision)
    : model_(std::move(model)),
      data_(std::move(data)),
      loss_(settings.loss),
      target_(settings.target),
      precision_(precision) {
  const c10::NoGradGuard no_gradients;
  model_->set_mode(Mode::evaluation);
  try {
    loss(gather(data_.train, Range{0, std::min<std::int64_t>(2, data_.train.size())}));
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("the model does not fit the data: {}", mistake.what()),
                     mistake.hint);
  } catch (const std::exception& problem) {
    throw UsageError(fmt::format("the model does not fit the data: {}", first_line(problem)));
  }
  model_->set_mode(Mode::training);
}

const at::Tensor& Objective::targets_of(const Batch& batch) const {
  return target_ == Target::inputs ? batch.inputs : batch.targets;
}

/// Float32, so that the loss is computed in it: of bfloat16 outputs it would be rounded to three
/// digits.
at::Tensor Objective::outputs(const Batch& batch) {
  const Autocast autocast(precision_, batch.inputs.device());
  return model_->forward(batch.inputs).to(at::kFloat);
}

at::Tensor Objective::loss(const Batch& batch) {
  return mean_loss(loss_, outputs(batch), targets_of(batch));
}

std::vector<ScoreName> Objective::scores() const {
  if (loss_ != Loss::cross_entropy) return {{"test_loss", Better::lower}};
  return {{"test_loss", Better::lower}, {"test_accuracy", Better::higher}};
}

std::vector<double> Objective::evaluate(Range range) {
  constexpr std::int64_t kChunk = 1024;  // bounds the memory
  const c10::NoGradGuard no_gradients;
  model_->set_mode(Mode::evaluation);
  double loss_sum = 0;
  double correct = 0;
  for (auto begin = range.begin; begin < range.end; begin += kChunk) {
    const Batch batch = gather(data_.test, Range{begin, std::min(begin + kChunk, range.end)});
    const at::Tensor answers = outputs(batch);
    loss_sum += mean_loss(loss_, answers, targets_of(batch)).item<double>() *
                static_cast<double>(batch.size());
    if (loss_ != Loss::cross_entropy) continue;
    correct += answers.argmax(1).eq(batch.targets).sum().item<double>();
  }
  if (loss_ != Loss::cross_entropy) return {loss_sum};
  return {loss_sum, correct};
}

}  // namespace dtool::trainer
