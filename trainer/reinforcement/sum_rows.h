// SPDX-License-Identifier: MIT
// The two loops of the encoder of observations: adding up rows of a table, and adding gradients to
// the rows. Without LibTorch.
#pragma once

#include <cstdint>

namespace dtool::trainer {

/// A table of embeddings of observations, row by row (see view_embedding.h).
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
