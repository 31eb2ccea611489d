// SPDX-License-Identifier: MIT
// The encoder of observations: adds up one learned row for each thing seen in each cell of the
// view. This is a linear layer over one-hot inputs, without the zeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "trainer/objectnav/observation.h"

namespace dtool::trainer {

/// How many values each byte of an observation can have.
inline constexpr auto kCodesOfByte = [] {
  std::array<std::int64_t, kObservationBytes> codes{};
  codes.fill(kSeenKinds);
  codes[kGoalByte] = kObjectClasses;
  codes[kPreviousActionByte] = kPreviousActions;
  codes[kHeadByte] = kHeads;
  return codes;
}();

/// Where the rows of each byte begin in the table: code c of byte i is row kFirstRows[i] + c.
inline constexpr auto kFirstRows = [] {
  std::array<std::int64_t, kObservationBytes + 1> rows{};
  for (std::size_t i = 0; i < kObservationBytes; ++i) rows[i + 1] = rows[i] + kCodesOfByte[i];
  return rows;
}();
inline constexpr std::int64_t kEmbeddingRows = kFirstRows.back();

/// relu(the sum over an observation's bytes of the table's row for each value). Maps uint8 [..,
/// kObservationBytes] and float [kEmbeddingRows, E] to [.., E]. Differentiable in `table`; the
/// result does not depend on the number of threads. On CPUs our own loops are used; on other
/// devices, and for other types than float, `embed_views_by_product`, whose `first_rows` are
/// made for each call.
at::Tensor embed_views(const at::Tensor& observations, const at::Tensor& table);

/// The same as a product with ones and zeros: few launches, always the same order of addition, and
/// no wait for the device. `first_rows` is `first_rows_on` the table's device.
at::Tensor embed_views_by_product(const at::Tensor& observations, const at::Tensor& table,
                                  const at::Tensor& first_rows);

/// kFirstRows of the bytes, int64.
at::Tensor first_rows_on(at::Device device);

/// The same with PyTorch's embedding bags, on any device.
at::Tensor embed_views_by_operations(const at::Tensor& observations, const at::Tensor& table);

}  // namespace dtool::trainer
