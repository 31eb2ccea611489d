// SPDX-License-Identifier: MIT
// Observations of nothing in particular.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/objectnav/agent/view_embedding.h"

namespace dtool::trainer {

/// uint8 [shape.., kObservationBytes], every byte evenly from what it can be, by the default
/// generator.
inline at::Tensor random_observations(std::vector<std::int64_t> shape) {
  std::vector<at::Tensor> bytes;
  for (const auto codes : kCodesOfByte) bytes.push_back(at::randint(codes, shape, at::kByte));
  return at::stack(bytes, -1);
}

}  // namespace dtool::trainer
