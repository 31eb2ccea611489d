// SPDX-License-Identifier: MIT
// Mini-batches are the same however samplers are dealt out to ranks.
#include "trainer/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace dtool::trainer;

namespace {

/// The global numbers in each mini-batch of one rank.
std::vector<std::set<std::int64_t>> numbers(const SamplerRange& samplers, std::int64_t parts,
                                            std::uint64_t seed, std::int64_t pass) {
  std::vector<std::set<std::int64_t>> all;
  for (const auto& batch : mini_batches(samplers, parts, seed, pass)) {
    all.emplace_back();
    for (const auto index : batch) all.back().insert(samplers.first + index);
  }
  return all;
}

}  // namespace

TEST(MiniBatches, OfTwoRanksAreThoseOfOneWithAllSamplers) {
  for (const std::int64_t parts : {1, 2, 3, 5}) {
    for (std::int64_t pass = 0; pass < 20; ++pass) {
      auto whole = numbers({0, 60}, parts, 7, pass);
      const auto first = numbers({0, 30}, parts, 7, pass);
      const auto second = numbers({30, 30}, parts, 7, pass);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(whole[i].size(), 60U / whole.size());
        std::set<std::int64_t> both = first[i];
        both.insert(second[i].begin(), second[i].end());
        EXPECT_EQ(both, whole[i]) << parts << ' ' << pass;
      }
    }
  }
}

TEST(MiniBatches, HaveEverySamplerOnceInRisingOrder) {
  std::vector<std::int64_t> seen;
  for (const auto& batch : mini_batches({12, 17}, 4, 1, 0)) {
    EXPECT_TRUE(std::is_sorted(batch.begin(), batch.end()));
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 17U);
  for (std::int64_t i = 0; i < 17; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(MiniBatches, DifferByPassAndSeed) {
  std::set<std::vector<std::vector<std::int64_t>>> kinds;
  for (std::int64_t pass = 0; pass < 10; ++pass) kinds.insert(mini_batches({0, 60}, 4, 1, pass));
  kinds.insert(mini_batches({0, 60}, 4, 2, 0));
  EXPECT_EQ(kinds.size(), 11U);
}

TEST(MiniBatches, AreTheSameOnEveryMachine) {
  EXPECT_EQ(random_bits(1, 2, 3, 4), 15374388949593934587U);
  EXPECT_EQ(random_share(1, 2, 3, 4),
            static_cast<double>(random_bits(1, 2, 3, 4) >> 11U) / 9007199254740992.0);
  EXPECT_EQ(mini_batches({3, 9}, 4, 5, 6),
            (std::vector<std::vector<std::int64_t>>{{3, 8}, {0, 2, 7}, {4, 6}, {1, 5}}));
}
