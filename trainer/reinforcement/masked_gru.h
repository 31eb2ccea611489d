// SPDX-License-Identifier: MIT
// A gated recurrent unit over sequences in which episodes begin and end: before each step the
// memory is multiplied by a mask.
#pragma once

#include <ATen/core/Tensor.h>

namespace dtool::trainer {

/// As torch.nn.GRUCell's, gates in PyTorch's order: r, z, n. The matrices are transposes of
/// PyTorch's: a product of 60 rows with this layout takes three fifths of the time.
struct GruWeights {
  at::Tensor input;           ///< [E, 3H]
  at::Tensor recurrent;       ///< [H, 3H]
  at::Tensor input_bias;      ///< [3H]
  at::Tensor recurrent_bias;  ///< [3H]
};

/// The memory after each step, [T, N, H], for `inputs` [T, N, E], the memory before the first step
/// [N, H], and `keep` [T, N]. Before each step the memory is multiplied by `keep`: 0 if an episode
/// begins, else 1. Differentiable in the weights, the inputs and the memory. Between matrix
/// products our own loops run on CPUs, and PyTorch's kernels for a cell on GPUs; on other devices,
/// and on CPUs for other types than float, `masked_gru_by_operations` is used.
at::Tensor masked_gru(const GruWeights& weights, const at::Tensor& inputs,
                      const at::Tensor& memory_at_start, const at::Tensor& keep);

/// The same with PyTorch's operations, on any device.
at::Tensor masked_gru_by_operations(const GruWeights& weights, const at::Tensor& inputs,
                                    const at::Tensor& memory_at_start, const at::Tensor& keep);

/// One step without gradients: the memory [N, H] after `inputs` [N, E], for `memory` [N, H] and
/// `keep` [N].
at::Tensor masked_gru_step(const GruWeights& weights, const at::Tensor& inputs,
                           const at::Tensor& memory, const at::Tensor& keep);

}  // namespace dtool::trainer
