// SPDX-License-Identifier: MIT
#include "trainer/supervised/objective.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

std::vector<double> Objective::evaluate(Range range) {
  constexpr std::int64_t kChunk = 1024;  // bounds the memory
  const c10::NoGradGuard no_gradients;
  model().set_mode(Mode::evaluation);
  const at::Tensor right = at::zeros({}, data().test.inputs.options().dtype(at::kDouble));
  double loss_sum = 0;
  for (auto begin = range.begin; begin < range.end; begin += kChunk) {
    const Batch batch = gather(data().test, Range{begin, std::min(begin + kChunk, range.end)});
    loss_sum += loss(batch, right).item<double>() * static_cast<double>(batch.size());
  }
  if (!counts_right()) return {loss_sum};
  return {loss_sum, right.item<double>()};
}

std::vector<ScoreName> Objective::scores() const {
  if (!counts_right()) return {{"test_loss", Better::lower}};
  return {{"test_loss", Better::lower}, {"test_accuracy", Better::higher}};
}

SettingsObjective::SettingsObjective(std::unique_ptr<Model> model, DataSets data,
                                     const ModelSettings& settings, Precision precision)
    : Objective(std::move(model), std::move(data)),
      loss_(settings.loss),
      target_(settings.target),
      precision_(precision) {
  const c10::NoGradGuard no_gradients;
  const DataSet& train = this->data().train;
  this->model().set_mode(Mode::evaluation);
  try {
    SettingsObjective::loss(gather(train, Range{0, std::min<std::int64_t>(2, train.size())}), {});
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("the model does not fit the data: {}", mistake.what()),
                     mistake.hint);
  } catch (const std::exception& problem) {
    throw UsageError(fmt::format("the model does not fit the data: {}", first_line(problem)));
  }
  this->model().set_mode(Mode::training);
}

/// The loss is computed in float32: of bfloat16 outputs it would be rounded to three digits.
at::Tensor SettingsObjective::loss(const Batch& batch, const at::Tensor& right) {
  at::Tensor outputs;
  {
    const Autocast autocast(precision_, batch.inputs.device());
    outputs = model().forward(batch.inputs).to(at::kFloat);
  }
  const bool is_own_target = target_ == Target::inputs;
  const at::Tensor mean = mean_loss(loss_, outputs, is_own_target ? batch.inputs : batch.targets);
  if (right.defined() && counts_right()) {
    right.add_(outputs.detach().argmax(1).eq(batch.targets).sum());
  }
  return mean;
}

// Sums in double precision on the host; a GPU's losses are fetched together.

namespace {

/// So many losses wait on a GPU at most, however seldom a line is logged.
constexpr std::size_t kMostPending = 4096;

void check_classes(const at::Tensor& outputs, const at::Tensor& targets) {
  if (targets.scalar_type() != at::kLong) {
    throw UsageError("loss cross_entropy needs classes, but the data's targets are numbers");
  }
  if (outputs.dim() != 2 || outputs.size(0) != targets.size(0)) {
    throw UsageError(
        fmt::format("loss cross_entropy needs outputs of shape [{}, classes], not [{}]",
                    targets.size(0), fmt::join(outputs.sizes(), ", ")));
  }
}

at::Tensor shaped_as(const at::Tensor& outputs, const at::Tensor& targets) {
  if (outputs.numel() != targets.numel()) {
    throw UsageError(fmt::format("the model's outputs have shape [{}], the targets [{}]",
                                 fmt::join(outputs.sizes(), ", "),
                                 fmt::join(targets.sizes(), ", ")));
  }
  return outputs.reshape(targets.sizes());
}

}  // namespace

void LossWindow::add(const at::Tensor& results, std::int64_t samples, std::int64_t step) {
  if (results.is_cpu()) return count(results.data_ptr<float>(), samples, step);
  // A copy, since the next step's results may go into the same memory.
  pending_.push_back({results.clone(), samples, step});
  if (pending_.size() == kMostPending) fetch_pending();
}

void LossWindow::count(const float* results, std::int64_t samples, std::int64_t step) {
  const double mean_loss = results[0];
  sums_.loss += mean_loss * static_cast<double>(samples);
  sums_.right += results[1];
  sums_.samples += static_cast<double>(samples);
  if (!std::isfinite(mean_loss)) sums_.first_bad_step = std::min(sums_.first_bad_step, step);
}

void LossWindow::fetch_pending() {
  if (pending_.empty()) return;
  std::vector<at::Tensor> all;
  for (const Pending& each : pending_) all.push_back(each.results);
  const at::Tensor fetched = at::stack(all).cpu();
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    count(fetched.data_ptr<float>() + 2 * i, pending_[i].samples, pending_[i].step);
  }
  pending_.clear();
}

LossSums LossWindow::take(const Group& group) {
  fetch_pending();
  LossSums sums = sums_;
  const auto over_ranks = sum_over_ranks(group, {sums.loss, sums.right, sums.samples});
  sums.loss = over_ranks[0];
  sums.right = over_ranks[1];
  sums.samples = over_ranks[2];
  sums.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  begin_again();
  return sums;
}

void LossWindow::begin_again() {
  pending_.clear();
  sums_ = {};
  begin_ = std::chrono::steady_clock::now();
}

std::string where_the_loss_was_lost(const Group& group, std::int64_t epoch, const LossSums& sums) {
  std::vector<double> steps(static_cast<std::size_t>(group.size), 0);
  steps[static_cast<std::size_t>(group.rank)] = static_cast<double>(sums.first_bad_step);
  steps = sum_over_ranks(group, steps);
  const auto first = std::min_element(steps.begin(), steps.end());
  const Member& member = group.members[static_cast<std::size_t>(first - steps.begin())];
  return fmt::format(
      "the loss is no longer a number at epoch {}, step {:.0f}, on rank {} (machine {}, {})", epoch,
      *first, member.rank, member.machine, member.host);
}

/// Shapes are compared first: PyTorch's mse_loss would broadcast [batch] against [batch, 1] and
/// average over all pairs.
at::Tensor mean_loss(Loss loss, const at::Tensor& outputs, const at::Tensor& targets) {
  if (loss == Loss::cross_entropy) {
    check_classes(outputs, targets);
    return at::cross_entropy_loss(outputs, targets);
  }
  if (!targets.is_floating_point()) {
    throw UsageError("this loss compares numbers, but the data's targets are classes",
                     "use model.loss = \"cross_entropy\", or model.target = \"inputs\"");
  }
  const at::Tensor shaped = shaped_as(outputs, targets);
  switch (loss) {
    case Loss::l1:
      return at::l1_loss(shaped, targets);
    case Loss::huber:
      return at::huber_loss(shaped, targets);
    case Loss::bce:
      return at::binary_cross_entropy_with_logits(shaped, targets);
    default:
      return at::mse_loss(shaped, targets);
  }
}

std::int64_t samples_of(const std::vector<DrawnBatch>& batches) {
  std::int64_t samples = 0;
  for (const DrawnBatch& each : batches) samples += each.size();
  return samples;
}

std::vector<at::Tensor> tensors_of(const std::vector<DrawnBatch>& batches) {
  std::vector<at::Tensor> tensors;
  for (const DrawnBatch& each : batches) {
    tensors.insert(tensors.end(), each.tensors.begin(), each.tensors.end());
  }
  return tensors;
}

std::vector<DrawnBatch> drawn_in(const std::vector<at::Tensor>& tensors, std::size_t count) {
  const auto each = static_cast<std::ptrdiff_t>(tensors.size() / count);
  std::vector<DrawnBatch> batches;
  for (auto next = tensors.begin(); next != tensors.end(); next += each) {
    batches.push_back({{next, next + each}});
  }
  return batches;
}

/// Only the last batch's gradients are exchanged: by then the others' are in the sum.
void step_on_device(const std::vector<DrawnBatch>& batches, Objective& objective,
                    DataParallel& parallel, Optimizer& optimizer, const at::Tensor& results) {
  const auto samples = static_cast<double>(samples_of(batches));
  const at::Tensor loss = results[0], right = results[1];
  results.zero_();
  parallel.begin_step();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const at::Tensor mean = objective.loss(batches[i].from(objective.data().train), right);
    const double share = static_cast<double>(batches[i].size()) / samples;
    const at::Tensor part = share == 1 ? mean : mean * share;
    const bool is_last = i + 1 == batches.size();
    parallel.backward(part, is_last ? AcrossRanks::yes : AcrossRanks::no);
    loss.add_(part.detach());
  }
  optimizer.apply();
}

}  // namespace dtool::trainer
