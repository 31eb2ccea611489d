// SPDX-License-Identifier: MIT
// ObjectNav's table fits a rank's second-level cache (1387 rows of 64 floats: 347 KiB), so no
// one-hot vector and no gathered row has to be stored.
#include "trainer/reinforcement/view_embedding.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "trainer/reinforcement/sum_rows.h"

namespace dtool::trainer {
namespace {

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
  for (const CodedBytes& each : spec.observations) {
    for (std::int64_t i = 0; i < each.bytes(); ++i, next += each.codes) rows.push_back(next);
  }
  return at::tensor(rows);
}

std::int64_t embedding_rows(const EnvironmentSpec& spec) {
  std::int64_t rows = 0;
  for (const CodedBytes& each : spec.observations) rows += each.bytes() * each.codes;
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

}  // namespace dtool::trainer
