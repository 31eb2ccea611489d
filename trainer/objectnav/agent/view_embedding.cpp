// SPDX-License-Identifier: MIT
// One rank's table fits its second-level cache (1387 rows of 64 floats: 347 KiB), so no one-hot
// vector and no gathered row has to be stored.
#include "trainer/objectnav/agent/view_embedding.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "trainer/reinforcement/sum_rows.h"

namespace dtool::trainer {
namespace {

constexpr std::int64_t kLeastPerThread = 256;  ///< observations, about 50 microseconds

TableShape shape_of(const at::Tensor& table) {
  return {table.size(1), kObservationBytes, kFirstRows.data()};
}

at::Tensor summed(const at::Tensor& observations, const at::Tensor& table) {
  auto shape = observations.sizes().vec();
  shape.back() = table.size(1);
  at::Tensor out = at::empty(shape, table.options());
  const auto* bytes = observations.data_ptr<std::uint8_t>();
  const auto* rows = table.data_ptr<float>();
  auto* values = out.data_ptr<float>();
  const auto width = table.size(1);
  at::parallel_for(0, observations.numel() / kObservationBytes, kLeastPerThread,
                   [&](std::int64_t begin, std::int64_t end) {
                     sum_rows(shape_of(table), rows, bytes + begin * kObservationBytes, end - begin,
                              values + begin * width);
                   });
  return out;
}

/// Each thread has some bytes of the observations, and so rows of its own: whatever their number,
/// every row adds up its gradients in the order of the observations.
at::Tensor table_gradient(const at::Tensor& observations, const at::Tensor& out,
                          const at::Tensor& gradient) {
  at::Tensor sums = at::zeros({kEmbeddingRows, out.size(-1)}, out.options());
  const auto count = observations.numel() / kObservationBytes;
  const auto* bytes = observations.data_ptr<std::uint8_t>();
  const auto* values = out.data_ptr<float>();
  const auto* given = gradient.data_ptr<float>();
  auto* rows = sums.data_ptr<float>();
  const auto least = 1 + kLeastPerThread * kObservationBytes / (count + 1);
  at::parallel_for(0, kObservationBytes, least, [&](std::int64_t begin, std::int64_t end) {
    add_to_rows(shape_of(sums), bytes, values, given, count, begin, end, rows);
  });
  return sums;
}

class EmbedViews : public torch::autograd::Function<EmbedViews> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& observations, const at::Tensor& table) {
    at::Tensor out = summed(observations, table);
    context->save_for_backward({observations, out});
    return out;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    return {at::Tensor(), table_gradient(saved[0], saved[1], gradients[0].contiguous())};
  }
};

}  // namespace

at::Tensor embed_views(const at::Tensor& observations, const at::Tensor& table) {
  if (!table.is_cpu() || table.scalar_type() != at::kFloat || !table.is_contiguous()) {
    return embed_views_by_product(observations, table, first_rows_on(table.device()));
  }
  return EmbedViews::apply(observations.contiguous(), table);
}

at::Tensor first_rows_on(at::Device device) {
  return at::tensor(at::ArrayRef<std::int64_t>(kFirstRows.data(), kObservationBytes)).to(device);
}

at::Tensor embed_views_by_product(const at::Tensor& observations, const at::Tensor& table,
                                  const at::Tensor& first_rows) {
  const at::Tensor rows = observations.flatten(0, -2).to(table.device(), at::kLong) + first_rows;
  at::Tensor ones = at::zeros({rows.size(0), kEmbeddingRows}, table.options());
  ones.scatter_(1, rows, 1);
  auto shape = observations.sizes().vec();
  shape.back() = table.size(1);
  return at::threshold(ones.mm(table), 0, 0).view(shape);
}

at::Tensor embed_views_by_operations(const at::Tensor& observations, const at::Tensor& table) {
  const at::Tensor first_rows = first_rows_on(table.device());
  const at::Tensor rows = (observations.to(table.device(), at::kLong) + first_rows).flatten();
  const at::Tensor bags = at::arange(0, rows.numel(), kObservationBytes, rows.options());
  auto shape = observations.sizes().vec();
  shape.back() = table.size(1);
  return at::relu(std::get<0>(at::embedding_bag(table, rows, bags))).view(shape);
}

}  // namespace dtool::trainer
