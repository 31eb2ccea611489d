// The two loops of the encoder of observations: rows of a table added up, and gradients added to
// the rows. Free of LibTorch.
#pragma once

#include <cstdint>

namespace dtool::trainer {

/// A table of embeddings of observations, row by row (see view_embedding.h).
struct TableShape {
  std::int64_t width;             ///< values of a row
  std::int64_t bytes;             ///< of an observation
  const std::int64_t* first_row;  ///< [bytes]: the row for value 0 of each byte
};

/// Writes relu(sum of the rows that each of `count` observations names) to `out` [count, width].
void sum_rows(const TableShape& shape, const float* table, const std::uint8_t* observations,
              std::int64_t count, float* out);

/// Adds to the rows of `table_gradient` that belong to the bytes [begin, end) what each observation
/// that names them adds: `gradient` [count, width] where `out` of `sum_rows` is above 0. Calls for
/// different bytes touch different rows.
void add_to_rows(const TableShape& shape, const std::uint8_t* observations, const float* out,
                 const float* gradient, std::int64_t count, std::int64_t begin, std::int64_t end,
                 float* table_gradient);

}  // namespace dtool::trainer
