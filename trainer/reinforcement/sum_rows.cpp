// A row of 64 values is held in registers while the 65 rows of an observation are added to it: what
// is left is one read from the second-level cache for each.
#include "trainer/reinforcement/sum_rows.h"

#include <algorithm>

#include "trainer/reinforcement/wide.h"

namespace dtool::trainer {
namespace {

/// 16 values at any address; where registers are shorter, the compiler takes several.
using Values __attribute__((vector_size(64), aligned(4), may_alias)) = float;
constexpr std::int64_t kValues = 16;
constexpr std::int64_t kPerBlock = 4;  ///< Values in registers at a time
constexpr std::int64_t kBlock = kValues * kPerBlock;

}  // namespace

DTOOL_WIDEST
void sum_rows(const TableShape& shape, const float* table, const std::uint8_t* observations,
              std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i, observations += shape.bytes, out += shape.width) {
    std::int64_t column = 0;
    for (; column + kBlock <= shape.width; column += kBlock) {
      Values sums[kPerBlock] = {};
      for (std::int64_t byte = 0; byte < shape.bytes; ++byte) {
        const auto row = shape.first_row[byte] + observations[byte];
        const auto* values = reinterpret_cast<const Values*>(table + row * shape.width + column);
        for (std::int64_t k = 0; k < kPerBlock; ++k) sums[k] += values[k];
      }
      auto* to = reinterpret_cast<Values*>(out + column);
      for (std::int64_t k = 0; k < kPerBlock; ++k) to[k] = sums[k] > 0 ? sums[k] : Values{};
    }
    for (; column < shape.width; ++column) {
      float sum = 0;
      for (std::int64_t byte = 0; byte < shape.bytes; ++byte) {
        sum += table[(shape.first_row[byte] + observations[byte]) * shape.width + column];
      }
      out[column] = std::max(sum, 0.0F);
    }
  }
}

DTOOL_WIDEST
void add_to_rows(const TableShape& shape, const std::uint8_t* observations, const float* out,
                 const float* gradient, std::int64_t count, std::int64_t begin, std::int64_t end,
                 float* table_gradient) {
  for (std::int64_t i = 0; i < count; ++i, observations += shape.bytes) {
    const float* const from = gradient + i * shape.width;
    const float* const sums = out + i * shape.width;
    std::int64_t column = 0;
    for (; column + kBlock <= shape.width; column += kBlock) {
      const auto* given = reinterpret_cast<const Values*>(from + column);
      const auto* above = reinterpret_cast<const Values*>(sums + column);
      Values added[kPerBlock];
      for (std::int64_t k = 0; k < kPerBlock; ++k) added[k] = above[k] > 0 ? given[k] : Values{};
      for (std::int64_t byte = begin; byte < end; ++byte) {
        const auto row = shape.first_row[byte] + observations[byte];
        auto* to = reinterpret_cast<Values*>(table_gradient + row * shape.width + column);
        for (std::int64_t k = 0; k < kPerBlock; ++k) to[k] += added[k];
      }
    }
    for (; column < shape.width; ++column) {
      if (sums[column] <= 0) continue;
      for (std::int64_t byte = begin; byte < end; ++byte) {
        const auto row = shape.first_row[byte] + observations[byte];
        table_gradient[row * shape.width + column] += from[column];
      }
    }
  }
}

}  // namespace dtool::trainer
