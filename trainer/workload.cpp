// The four workloads differ in their settings only.
#include "trainer/workload.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "trainer/loss.h"
#include "trainer/usage_error.h"

namespace dtool::trainer {

Workload::Workload(std::unique_ptr<Model> model, DataSets data, const ModelSettings& settings)
    : model_(std::move(model)),
      data_(std::move(data)),
      loss_(settings.loss),
      target_(settings.target) {
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

const at::Tensor& Workload::targets_of(const Batch& batch) const {
  return target_ == Target::inputs ? batch.inputs : batch.targets;
}

at::Tensor Workload::loss(const Batch& batch) {
  return mean_loss(loss_, model_->forward(batch.inputs), targets_of(batch));
}

std::vector<ScoreName> Workload::scores() const {
  if (loss_ != Loss::cross_entropy) return {{"test_loss", Better::lower}};
  return {{"test_loss", Better::lower}, {"test_accuracy", Better::higher}};
}

std::vector<double> Workload::evaluate(Range range) {
  constexpr std::int64_t kChunk = 1024;  // bounds the memory
  const c10::NoGradGuard no_gradients;
  model_->set_mode(Mode::evaluation);
  double loss_sum = 0;
  double correct = 0;
  for (auto begin = range.begin; begin < range.end; begin += kChunk) {
    const Batch batch = gather(data_.test, Range{begin, std::min(begin + kChunk, range.end)});
    const at::Tensor outputs = model_->forward(batch.inputs);
    loss_sum += mean_loss(loss_, outputs, targets_of(batch)).item<double>() *
                static_cast<double>(batch.size());
    if (loss_ != Loss::cross_entropy) continue;
    correct += outputs.argmax(1).eq(batch.targets).sum().item<double>();
  }
  if (loss_ != Loss::cross_entropy) return {loss_sum};
  return {loss_sum, correct};
}

}  // namespace dtool::trainer
