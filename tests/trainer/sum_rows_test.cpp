// SPDX-License-Identifier: MIT
// Both loops against the plain sum, for widths that fill registers and that do not.
#include "trainer/reinforcement/view_embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "trainer/data/sampler.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kBytes = 5, kValuesOfAByte = 4, kCount = 3;
constexpr std::int64_t kBehind = 160;  // values that stay as they are

/// Whole numbers from -9 to 9, so that every order of adding gives the same.
std::vector<float> whole_numbers(std::int64_t size, std::uint64_t seed) {
  std::vector<float> numbers(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(random_bits(1, seed, 0, i) % 19) - 9;
  }
  return numbers;
}

}  // namespace

TEST(SumRows, AddsWhatIsNamedAndGivesGradientsBackWhereTheSumIsAboveZero) {
  std::vector<std::int64_t> first_row;
  for (std::int64_t byte = 0; byte < kBytes; ++byte) first_row.push_back(byte * kValuesOfAByte);
  first_row.push_back(0);  // behind the last: nobody reads it
  std::vector<std::uint8_t> observations;
  for (std::uint64_t i = 0; i < (kCount + 1) * kBytes; ++i) {
    observations.push_back(static_cast<std::uint8_t>(random_bits(2, 0, 0, i) % kValuesOfAByte));
  }
  for (const std::int64_t width : {1, 15, 16, 17, 48, 64, 65, 80, 150}) {
    SCOPED_TRACE(width);
    const TableShape shape{width, kBytes, first_row.data()};
    const auto size = kBytes * kValuesOfAByte * width;
    const auto table = whole_numbers(size, 1);
    const auto gradient = whole_numbers(kCount * width + kBehind, 2);
    std::vector<float> out(static_cast<std::size_t>(kCount * width + kBehind), 99);
    sum_rows(shape, table.data(), observations.data(), kCount, out.data());
    EXPECT_EQ(std::count(out.end() - kBehind, out.end(), 99), kBehind);
    std::vector<float> added = whole_numbers(size, 3);
    std::vector<float> wanted = added;
    add_to_rows(shape, observations.data(), out.data(), gradient.data(), kCount, 1, 4,
                added.data());
    for (std::int64_t i = 0; i < kCount * width; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto row_of = [&](std::int64_t byte) {
        const auto value = observations[static_cast<std::size_t>(i / width * kBytes + byte)];
        return static_cast<std::size_t>(
            (first_row[static_cast<std::size_t>(byte)] + value) * width + i % width);
      };
      float sum = 0;
      for (std::int64_t byte = 0; byte < kBytes; ++byte) sum += table[row_of(byte)];
      EXPECT_EQ(out[at], std::max(sum, 0.F)) << i;
      for (std::int64_t byte = 1; byte < 4; ++byte) {
        if (sum > 0) wanted[row_of(byte)] += gradient[at];
      }
    }
    EXPECT_EQ(added, wanted);
  }
}
