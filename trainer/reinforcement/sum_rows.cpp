// SPDX-License-Identifier: MIT
// Up to 64 values of a row stay in registers while the 65 rows of an observation are added. Each
// row then costs one read from the second-level cache.
#include "trainer/reinforcement/sum_rows.h"

#include <algorithm>

#include "trainer/reinforcement/wide.h"

namespace dtool::trainer {
namespace {

/// 16 values at any address; where registers are shorter, the compiler takes several. Name the type
/// in full: `auto` and template arguments forget that it need not be aligned.
using Values __attribute__((vector_size(64), aligned(4), may_alias)) = float;
constexpr std::int64_t kValues = 16;

/// The observations and where their rows are.
struct Rows {
  const TableShape& shape;
  const std::uint8_t* observation;

  std::int64_t at(std::int64_t byte, std::int64_t column) const {
    return (shape.first_row[byte] + observation[byte]) * shape.width + column;
  }
};

/// `kCount` times 16 columns of one observation's sum. Inlined, so that it is built for the
/// processors that its caller is built for.
template <std::int64_t kCount>
[[gnu::always_inline]] inline void sum_columns(const Rows& rows, const float* table,
                                               std::int64_t column, float* out) {
  Values sums[kCount] = {};
  for (std::int64_t byte = 0; byte < rows.shape.bytes; ++byte) {
    const Values* const values = reinterpret_cast<const Values*>(table + rows.at(byte, column));
    for (std::int64_t k = 0; k < kCount; ++k) sums[k] += values[k];
  }
  Values* const to = reinterpret_cast<Values*>(out + column);
  for (std::int64_t k = 0; k < kCount; ++k) to[k] = sums[k] > 0 ? sums[k] : Values{};
}

/// The bytes whose rows get gradients.
struct Bytes {
  std::int64_t begin;
  std::int64_t end;
};

template <std::int64_t kCount>
[[gnu::always_inline]] inline void add_columns(const Rows& rows, const float* out,
                                               const float* gradient, std::int64_t column,
                                               const Bytes& bytes, float* table_gradient) {
  const Values* const given = reinterpret_cast<const Values*>(gradient + column);
  const Values* const above = reinterpret_cast<const Values*>(out + column);
  Values added[kCount];
  for (std::int64_t k = 0; k < kCount; ++k) added[k] = above[k] > 0 ? given[k] : Values{};
  for (std::int64_t byte = bytes.begin; byte < bytes.end; ++byte) {
    Values* const to = reinterpret_cast<Values*>(table_gradient + rows.at(byte, column));
    for (std::int64_t k = 0; k < kCount; ++k) to[k] += added[k];
  }
}

}  // namespace

DTOOL_WIDEST
void sum_rows(const TableShape& shape, const float* table, const std::uint8_t* observations,
              std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i, out += shape.width) {
    const Rows rows{shape, observations + i * shape.bytes};
    std::int64_t column = 0;
    for (; column + 4 * kValues <= shape.width; column += 4 * kValues) {
      sum_columns<4>(rows, table, column, out);
    }
    for (; column + kValues <= shape.width; column += kValues) {
      sum_columns<1>(rows, table, column, out);
    }
    for (; column < shape.width; ++column) {
      float sum = 0;
      for (std::int64_t byte = 0; byte < shape.bytes; ++byte) sum += table[rows.at(byte, column)];
      out[column] = std::max(sum, 0.0F);
    }
  }
}

DTOOL_WIDEST
void add_to_rows(const TableShape& shape, const std::uint8_t* observations, const float* out,
                 const float* gradient, std::int64_t count, std::int64_t begin, std::int64_t end,
                 float* table_gradient) {
  const Bytes bytes{begin, end};
  for (std::int64_t i = 0; i < count; ++i, out += shape.width, gradient += shape.width) {
    const Rows rows{shape, observations + i * shape.bytes};
    std::int64_t column = 0;
    for (; column + 4 * kValues <= shape.width; column += 4 * kValues) {
      add_columns<4>(rows, out, gradient, column, bytes, table_gradient);
    }
    for (; column + kValues <= shape.width; column += kValues) {
      add_columns<1>(rows, out, gradient, column, bytes, table_gradient);
    }
    for (; column < shape.width; ++column) {
      const float added = out[column] > 0 ? gradient[column] : 0;
      for (std::int64_t byte = begin; byte < end; ++byte) {
        table_gradient[rows.at(byte, column)] += added;
      }
    }
  }
}

}  // namespace dtool::trainer
