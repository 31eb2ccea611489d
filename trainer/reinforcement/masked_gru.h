// SPDX-License-Identifier: MIT
// A gated recurrent unit, and a long short-term memory, over sequences in which episodes begin and
// end: before each step the memory is multiplied by a mask.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace dtool::trainer {

/// As torch.nn.GRUCell's or LSTMCell's, the G gates in PyTorch's order: r, z, n or i, f, g, o. The
/// matrices are transposes of PyTorch's: a product of 60 rows with this layout takes three fifths
/// of the time.
struct RecurrentWeights {
  at::Tensor input;           ///< [E, G H]
  at::Tensor recurrent;       ///< [H, G H]
  at::Tensor input_bias;      ///< [G H]
  at::Tensor recurrent_bias;  ///< [G H]
};

/// What runs between the matrix products: our own loops, PyTorch's kernels for a cell, which CPUs
/// lack, or its operations.
enum class GruWay { loops, kernels, operations };

/// The memory after each step, [T, N, H], for `inputs` [T, N, E], the memory before the first step
/// [N, H], and `keep` [T, N]. Before each step the memory is multiplied by `keep`: 0 if an episode
/// begins, else 1. Differentiable in the weights, the inputs and the memory. Without a `way` it is
/// loops on CPUs, and kernels on GPUs; on other devices, and on CPUs for other types than float,
/// operations.
at::Tensor masked_gru(const RecurrentWeights& weights, const at::Tensor& inputs,
                      const at::Tensor& memory_at_start, const at::Tensor& keep,
                      std::optional<GruWay> way = {});

/// One step without gradients: the memory [N, H] after `inputs` [N, E], for `memory` [N, H] and
/// `keep` [N].
at::Tensor masked_gru_step(const RecurrentWeights& weights, const at::Tensor& inputs,
                           const at::Tensor& memory, const at::Tensor& keep,
                           std::optional<GruWay> way = {});

struct Remembered {
  at::Tensor outputs;  ///< [T, N, H], of each step
  at::Tensor memory;   ///< the last step's
};

/// The same by a long short-term memory, whose memory [N, 2H] is its output and then its cell.
Remembered masked_lstm(const RecurrentWeights& weights, const at::Tensor& inputs,
                       const at::Tensor& memory_at_start, const at::Tensor& keep);

}  // namespace dtool::trainer
