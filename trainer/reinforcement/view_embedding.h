// SPDX-License-Identifier: MIT
// The encoder of observations: adds up one learned row for each byte's code, such as what is seen
// in a cell of a view. This is a linear layer over one-hot inputs, without the zeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/reinforcement/environments.h"

namespace dtool::trainer {

/// The table has a row for each code of each byte of an observation: code c of byte i is row
/// first_rows[i] + c. int64 [observation_bytes], on the CPU.
at::Tensor first_rows_of(const EnvironmentSpec& spec);
/// The rows of all bytes.
std::int64_t embedding_rows(const EnvironmentSpec& spec);

/// relu(the sum over an observation's bytes of the table's row for each code). Maps uint8 [..,
/// bytes] and float [rows, E] to [.., E]. Differentiable in `table`; the result does not depend on
/// the number of threads. `first_rows` is on the table's device. On CPUs our own loops are used; on
/// other devices, and for other types than float, `embed_views_by_product`.
at::Tensor embed_views(const at::Tensor& observations, const at::Tensor& table,
                       const at::Tensor& first_rows);

/// The same as a product with ones and zeros: few launches, always the same order of addition, and
/// no wait for the device.
at::Tensor embed_views_by_product(const at::Tensor& observations, const at::Tensor& table,
                                  const at::Tensor& first_rows);

// The two loops of the encoder: adding up rows of a table, and adding gradients to the rows.

/// A table of embeddings of observations, row by row.
struct TableShape {
  std::int64_t width;             ///< values of a row
  std::int64_t bytes;             ///< the bytes of an observation
  const std::int64_t* first_row;  ///< [bytes]: the row of value 0 of each byte
};

/// Writes relu(sum of the rows that an observation names) to `out` [count, width] for `count`
/// observations.
void sum_rows(const TableShape& shape, const float* table, const std::uint8_t* observations,
              std::int64_t count, float* out);

/// The gradient of sum_rows(). For the bytes [begin, end) of each observation, adds to the named
/// rows of `table_gradient` the row of `gradient` [count, width], at the places where `out` is
/// above 0. Calls for different bytes touch different rows.
void add_to_rows(const TableShape& shape, const std::uint8_t* observations, const float* out,
                 const float* gradient, std::int64_t count, std::int64_t begin, std::int64_t end,
                 float* table_gradient);

}  // namespace dtool::trainer
