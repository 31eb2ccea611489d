// SPDX-License-Identifier: MIT
// The inner loop of loading images: converts rows of bytes to a batch of floats. Without LibTorch.
#pragma once

#include <cstdint>
#include <span>

namespace dtool::trainer {

/// Writes row `samples[i]` of `rows` ([any, width] bytes) to row i of `out` ([samples, width]),
/// each value divided by 255 as torchvision's ToTensor does.
void gather_bytes(const std::uint8_t* rows, std::int64_t width,
                  std::span<const std::int64_t> samples, float* out);

}  // namespace dtool::trainer
