// SPDX-License-Identifier: MIT
// The distance between a model's outputs and its targets.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/settings/model_settings.h"

namespace dtool::trainer {

/// The mean loss over a batch, a scalar; PyTorch's functions of the same names. cross_entropy takes
/// [batch, classes] and int64 [batch]; the others take outputs and targets with equally many
/// values; bce takes outputs before the sigmoid. Throws UsageError if the shapes do not fit.
at::Tensor mean_loss(Loss loss, const at::Tensor& outputs, const at::Tensor& targets);

}  // namespace dtool::trainer
