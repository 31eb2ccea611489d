// SPDX-License-Identifier: MIT
// What the rank that has loaded a machine's data tells the machine's other ranks about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/shared_values.h"

namespace dtool::trainer {

enum class Numbers { uint8, int64, float32 };

/// The size of one, in bytes.
std::size_t size_of(Numbers numbers);

/// A tensor, row by row.
struct OfferedTensor {
  Numbers numbers = Numbers::float32;
  std::vector<std::int64_t> shape;
  SharedPlace place;
};

/// Training inputs and targets, test inputs and targets. Some may lie in the same place.
struct DataOffer {
  std::vector<std::int64_t> sample_shape;
  std::int64_t outputs = 0;
  std::array<OfferedTensor, 4> tensors;
};

/// A line for the samples, and one for each tensor.
std::string to_text(const DataOffer& offer);

/// Absent if the text is anything else, or a tensor takes more than its place has.
std::optional<DataOffer> parse_offer(std::string_view text);

}  // namespace dtool::trainer
