// SPDX-License-Identifier: MIT
// A forward pass before the first step, from which training learns the shapes and parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "trainer/ranks/process_group.h"
#include "trainer/supervised/objective.h"

namespace dtool::trainer {

/// The loss of two training samples, with what autograd needs for a backward pass.
at::Tensor probe_loss(Objective& objective);

/// Runs `action`, then restores the model's buffers: a probe must not change a batch norm's
/// averages.
void keeping_buffers(const Model& model, const std::function<void()>& action);

/// The parameters that the loss depends on. Rank 0 notes the others, which never change because
/// they have no gradient. Throws UsageError if there are none.
std::vector<at::Tensor> trained_parameters(Objective& objective, const Group& group);

}  // namespace dtool::trainer
