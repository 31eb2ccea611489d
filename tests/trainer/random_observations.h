// SPDX-License-Identifier: MIT
// Observations of nothing in particular, and PyTorch's way to encode them.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/objectnav/house.h"
#include "trainer/objectnav/samplers.h"

namespace dtool::trainer {

/// uint8 [shape.., kObservationBytes], every byte evenly from what it can be, by the default
/// generator.
inline at::Tensor random_observations(std::vector<std::int64_t> shape) {
  std::vector<at::Tensor> bytes;
  for (const Observed& part : objectnav_spec().observations) {
    for (std::int64_t i = 0; i < part.bytes(); ++i) {
      bytes.push_back(at::randint(part.codes, shape, at::kByte));
    }
  }
  return at::stack(bytes, -1);
}

/// What `embed_views` computes, with PyTorch's embedding bags, on any device.
inline at::Tensor embed_views_by_operations(const at::Tensor& observations, const at::Tensor& table,
                                            const at::Tensor& first_rows) {
  const at::Tensor rows = (observations.to(table.device(), at::kLong) + first_rows).flatten();
  const at::Tensor bags = at::arange(0, rows.numel(), first_rows.numel(), rows.options());
  auto shape = observations.sizes().vec();
  shape.back() = table.size(1);
  return at::relu(std::get<0>(at::embedding_bag(table, rows, bags))).view(shape);
}

}  // namespace dtool::trainer
