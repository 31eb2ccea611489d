// A forward pass before the first step, from which training learns what it has to do with.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "trainer/ranks/process_group.h"
#include "trainer/supervised/objective.h"

namespace dtool::trainer {

/// The loss of two training samples, with what autograd needs for a backward pass.
at::Tensor probe_loss(Objective& objective);

/// Does `action`, then puts the model's buffers back as they were: a batch norm's averages must not
/// hear of a probe.
void keeping_buffers(const Model& model, const std::function<void()>& action);

/// The parameters that the loss depends on; rank 0 notes the others, which stay as they are for
/// want of a gradient. Throws UsageError when there are none.
std::vector<at::Tensor> trained_parameters(Objective& objective, const Group& group);

}  // namespace dtool::trainer
