// SPDX-License-Identifier: MIT
// A step's work on the device: what a CUDA graph records. supervised.cpp runs it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/data/data_set.h"
#include "trainer/supervised/objective.h"
#include "trainer/training/data_parallel.h"
#include "trainer/training/optimizer.h"

namespace dtool::trainer {

std::int64_t samples_of(const std::vector<DrawnBatch>& batches);

/// Their tensors one after the other, and back for `count` batches.
std::vector<at::Tensor> tensors_of(const std::vector<DrawnBatch>& batches);
std::vector<DrawnBatch> drawn_in(const std::vector<at::Tensor>& tensors, std::size_t count);

/// One step with the mean loss of `batches`, from the objective's training set, in which each
/// counts by its samples; `loss`, a scalar on the device, gets that mean. It must neither wait for
/// the device nor depend on a changing number in the CPU's memory. `Optimizer::prepare` comes
/// before.
void step_on_device(const std::vector<DrawnBatch>& batches, Objective& objective,
                    DataParallel& parallel, Optimizer& optimizer, const at::Tensor& loss);

}  // namespace dtool::trainer
