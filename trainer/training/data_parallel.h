// Data parallelism, the whole of it: equal parameters on every rank, and gradients averaged while
// the backward pass computes them. When to average what is up to PyTorch's own c10d::Reducer.
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
enum class Exchange { no, yes };

/// Lives as long as the training of `parameters`.
class DataParallel {
 public:
  /// Copies rank 0's parameters to all ranks. The parameters are leaves that require gradients.
  DataParallel(Group group, std::vector<at::Tensor> parameters);
  ~DataParallel();

  /// Forgets the gradients of the step before.
  void begin_step();

  /// Adds the gradients of `loss` (a scalar, each rank's own) to the parameters'; with the
  /// exchange, leaves there the average over the ranks of all that came since `begin_step`. Every
  /// parameter must take part in `loss`.
  void backward(const at::Tensor& loss, Exchange exchange);

  /// One backward pass whose gradients are thrown away. The reducer sorts its buckets anew after
  /// its first pass, and with three or more ranks the order of addition follows the buckets;
  /// settled beforehand, a resumed run adds up exactly as the run that was not interrupted.
  void settle(const std::function<at::Tensor()>& loss);

 private:
  Group group_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<c10d::Reducer> reducer_;  ///< null when there is one rank
};

}  // namespace dtool::trainer
