// SPDX-License-Identifier: MIT
// Shapes are compared first: PyTorch's mse_loss would broadcast [batch] against [batch, 1] and
// average over all pairs.
#include "trainer/model/loss.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

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

}  // namespace dtool::trainer
