// SPDX-License-Identifier: MIT
// The encoder's loops against PyTorch's embedding bags.
#include "trainer/reinforcement/view_embedding.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/trainer/random_observations.h"

using namespace dtool::trainer;

namespace {

struct Encoded {
  at::Tensor values;
  at::Tensor gradient;
};

Encoded encode(decltype(&embed_views) encoder, const at::Tensor& observations,
               const at::Tensor& table, const at::Tensor& direction) {
  const at::Tensor leaf = table.detach().requires_grad_(true);
  const at::Tensor values = encoder(observations, leaf, first_rows_of(objectnav_spec()));
  (values * direction).sum().backward();
  return {values.detach(), leaf.grad()};
}

}  // namespace

TEST(ViewEmbedding, IsASumOfRowsForTablesOfEveryWidth) {
  torch::manual_seed(1);
  for (const std::int64_t width : {64, 96, 87, 7}) {
    const at::Tensor observations = random_observations({6, 50});
    const at::Tensor table = at::randn({embedding_rows(objectnav_spec()), width});
    const at::Tensor direction = at::randn({6, 50, width});
    const auto ours = encode(embed_views, observations, table, direction);
    const auto theirs = encode(embed_views_by_operations, observations, table, direction);
    EXPECT_TRUE(ours.values.allclose(theirs.values, 1e-5, 1e-5)) << width;
    EXPECT_TRUE(ours.gradient.allclose(theirs.gradient, 1e-5, 1e-5)) << width;
    const auto product = encode(embed_views_by_product, observations, table, direction);
    EXPECT_TRUE(product.values.allclose(theirs.values, 1e-5, 1e-5)) << width;
    EXPECT_TRUE(product.gradient.allclose(theirs.gradient, 1e-5, 1e-5)) << width;
    EXPECT_GT(ours.values.max().item<float>(), 1);
    EXPECT_EQ(ours.values.min().item<float>(), 0);
  }
}

TEST(ViewEmbedding, GivesTheSameNumbersWithAnyNumberOfThreads) {
  torch::manual_seed(2);
  const at::Tensor observations = random_observations({3000});
  const at::Tensor table = at::randn({embedding_rows(objectnav_spec()), 64});
  const at::Tensor direction = at::randn({3000, 64});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = encode(embed_views, observations, table, direction);
  at::set_num_threads(3);
  const auto together = encode(embed_views, observations, table, direction);
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.values.equal(together.values));
  EXPECT_TRUE(alone.gradient.equal(together.gradient));
}
