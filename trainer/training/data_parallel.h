// SPDX-License-Identifier: MIT
// All of data parallelism: equal parameters on every rank, and gradients averaged while the
// backward pass computes them. PyTorch's own c10d::Reducer decides when to average which gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "trainer/ranks/process_group.h"

namespace c10d {
class Reducer;
}

namespace dtool::trainer {

/// Whether a backward pass ends a step: only then are gradients exchanged.
enum class AcrossRanks { no, yes };

/// Lives as long as the training of `parameters`.
class DataParallel {
 public:
  /// Copies rank 0's parameters to all ranks. The parameters are leaves that require gradients.
  DataParallel(Group group, std::vector<at::Tensor> parameters);
  ~DataParallel();

  /// Clears the gradients of the previous step.
  void begin_step();

  /// Adds the gradients of `loss` (a scalar, each rank's own) to the parameters' gradients. With
  /// the exchange, replaces them by the average over the ranks of all gradients since `begin_step`.
  /// Every parameter must take part in `loss`.
  void backward(const at::Tensor& loss, AcrossRanks across);

  /// Runs one backward pass whose gradients are dropped. The reducer sorts its buckets again after
  /// its first pass, and with three or more ranks the order of addition follows the buckets. With
  /// the buckets settled in advance, a resumed run adds up exactly as an uninterrupted one.
  void settle(const std::function<at::Tensor()>& loss);

 private:
  Group group_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<c10d::Reducer> reducer_;  ///< null if there is one rank
};

}  // namespace dtool::trainer
