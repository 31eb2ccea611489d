// SPDX-License-Identifier: MIT
// Batch norm over the batches of all ranks together: the result equals that of one rank with the
// whole batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// Each is [channels].
struct BatchNormTensors {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;      ///< moved by `momentum` towards the batch's mean
  at::Tensor running_variance;  ///< likewise, towards the unbiased variance
};

/// Normalises `values` ([batch, channels, ...]) by mean and variance over all ranks, as
/// torch.nn.SyncBatchNorm does in training. It uses one all-gather forward and one all-reduce
/// backward, so every rank must call it equally often. Differentiable in `values`, weight and bias.
/// Ranks may hold different numbers of samples. It computes in float32 whatever the type of
/// `values`, and never waits for the device. Throws CollectiveFailed.
at::Tensor sync_batch_norm(const Group& group, const at::Tensor& values,
                           const BatchNormTensors& tensors, double momentum, double epsilon);

}  // namespace dtool::trainer
