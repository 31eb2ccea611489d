// SPDX-License-Identifier: MIT
// ObjectNav's table fits a rank's second-level cache (1387 rows of 64 floats: 347 KiB), so no
// one-hot vector and no gathered row has to be stored.
#include "trainer/reinforcement/view_embedding.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "trainer/reinforcement/gru_gates.h"

namespace dtool::trainer {
namespace {

// Up to 64 values of a row stay in registers while the 65 rows of an observation are added. Each
// row then costs one read from the second-level cache.

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

constexpr std::int64_t kLeastPerThread = 256;  ///< observations, about 50 microseconds

TableShape shape_of(const at::Tensor& table, const at::Tensor& first_rows) {
  return {table.size(1), first_rows.numel(), first_rows.data_ptr<std::int64_t>()};
}

at::Tensor summed(const at::Tensor& observations, const at::Tensor& table,
                  const at::Tensor& first_rows) {
  const TableShape of_table = shape_of(table, first_rows);
  auto shape = observations.sizes().vec();
  shape.back() = table.size(1);
  at::Tensor out = at::empty(shape, table.options());
  const auto* bytes = observations.data_ptr<std::uint8_t>();
  const auto* rows = table.data_ptr<float>();
  auto* values = out.data_ptr<float>();
  at::parallel_for(0, observations.numel() / of_table.bytes, kLeastPerThread,
                   [&](std::int64_t begin, std::int64_t end) {
                     sum_rows(of_table, rows, bytes + begin * of_table.bytes, end - begin,
                              values + begin * of_table.width);
                   });
  return out;
}

/// Each thread has some bytes of the observations, and so rows of its own: whatever their number,
/// every row adds up its gradients in the order of the observations.
at::Tensor table_gradient(const at::Tensor& observations, const at::Tensor& table,
                          const at::Tensor& first_rows, const at::Tensor& out,
                          const at::Tensor& gradient) {
  at::Tensor sums = at::zeros_like(table);
  const TableShape shape = shape_of(sums, first_rows);
  const auto count = observations.numel() / shape.bytes;
  const auto* bytes = observations.data_ptr<std::uint8_t>();
  const auto* values = out.data_ptr<float>();
  const auto* given = gradient.data_ptr<float>();
  auto* rows = sums.data_ptr<float>();
  const auto least = 1 + kLeastPerThread * shape.bytes / (count + 1);
  at::parallel_for(0, shape.bytes, least, [&](std::int64_t begin, std::int64_t end) {
    add_to_rows(shape, bytes, values, given, count, begin, end, rows);
  });
  return sums;
}

class EmbedViews : public torch::autograd::Function<EmbedViews> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& observations, const at::Tensor& table,
                            const at::Tensor& first_rows) {
    at::Tensor out = summed(observations, table, first_rows);
    context->save_for_backward({observations, table, first_rows, out});
    return out;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    return {at::Tensor(),
            table_gradient(saved[0], saved[1], saved[2], saved[3], gradients[0].contiguous()),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor first_rows_of(const EnvironmentSpec& spec) {
  std::vector<std::int64_t> rows;
  std::int64_t next = 0;
  for (const Observed& each : spec.observations) {
    for (std::int64_t i = 0; i < each.bytes(); ++i, next += each.codes) rows.push_back(next);
  }
  return at::tensor(rows);
}

std::int64_t embedding_rows(const EnvironmentSpec& spec) {
  std::int64_t rows = 0;
  for (const Observed& each : spec.observations) rows += each.bytes() * each.codes;
  return rows;
}

at::Tensor embed_views(const at::Tensor& observations, const at::Tensor& table,
                       const at::Tensor& first_rows) {
  if (!table.is_cpu() || table.scalar_type() != at::kFloat || !table.is_contiguous()) {
    return embed_views_by_product(observations, table, first_rows);
  }
  return EmbedViews::apply(observations.contiguous(), table, first_rows);
}

at::Tensor embed_views_by_product(const at::Tensor& observations, const at::Tensor& table,
                                  const at::Tensor& first_rows) {
  const at::Tensor rows = observations.flatten(0, -2).to(table.device(), at::kLong) + first_rows;
  at::Tensor ones = at::zeros({rows.size(0), table.size(0)}, table.options());
  ones.scatter_(1, rows, 1);
  auto shape = observations.sizes().vec();
  shape.back() = table.size(1);
  return at::threshold(ones.mm(table), 0, 0).view(shape);
}

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
