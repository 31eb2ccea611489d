// SPDX-License-Identifier: MIT
// The work of a gated recurrent unit between its matrix products, one step at a time; each function
// passes over the values once. Without LibTorch.
#pragma once

#include <cstdint>

/// Makes the compiler build a function once for each generation of x86-64 processors. At its start
/// the program chooses the newest version that the processor supports.
// Sanitizers' start-up code is incompatible with this choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTOOL_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTOOL_WIDEST
#endif

namespace dtool::trainer {

/// Arrays of one step are [rows, width] in row-major order; `gates` is [rows, 3 width] with r, z
/// and n side by side.
struct GateShape {
  std::int64_t rows;   ///< sequences
  std::int64_t width;  ///< values of a memory
};

/// PyTorch's formulas (https://pytorch.org/docs/stable/generated/torch.nn.GRU.html), h being the
/// memory:
///   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)    z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
///   m = W_hn h + b_hn                     n = tanh(W_in x + b_in + r m)
///   h' = (1 - z) n + z h
struct GateForward {
  const float* input_bias;      ///< [3 width]: b_ir, b_iz, b_in
  const float* recurrent_bias;  ///< [3 width]: b_hr, b_hz, b_hn
  const float* recurrent;       ///< [rows, 3 width]: W_h h
  const float* memory;          ///< h
  const float* next_keep;       ///< [rows]: 0 if the next step begins an episode, else 1; or null
  float* gates;                 ///< input: W_i x; output: r, z, n
  float* candidate;             ///< out: m
  float* next_memory;           ///< out: h'
  float* kept_memory;           ///< out: h' times next_keep; not written if that is null
};
void gates_forward(const GateShape& shape, const GateForward& step);

/// Gradients of one step. `d x` is the gradient with respect to x of the formulas above.
struct GateBackward {
  const float* gradient;   ///< d h' from the values that this step reads
  const float* next_keep;  ///< [rows]; null in the last step, where `carried` is zero
  const float* memory;     ///< h
  /// Input: d (h' times next_keep) from the next step; output: the part of d h that does not go
  /// through the matrices.
  float* carried;
  float* gates;  ///< input: r, z, n; output: the gradients with respect to the functions' arguments
  float* candidate;  ///< input: m; output: d m
  float* bias;       ///< [4 width]: the gradients of b_.r, b_.z, b_in, b_hn are added
};
void gates_backward(const GateShape& shape, const GateBackward& step);

}  // namespace dtool::trainer
