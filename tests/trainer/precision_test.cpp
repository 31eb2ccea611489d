// SPDX-License-Identifier: MIT
// bfloat16 keeps 8 bits of a number: what is computed in it differs by up to 2^-8 of its size.
#include "trainer/model/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

using namespace dtool::trainer;

TEST(Autocast, MatrixProductsAreBfloat16AndParametersStayFloat32) {
  const at::Tensor weight = at::randn({10, 20}).requires_grad_(true);
  const at::Tensor inputs = at::randn({4, 20});
  at::Tensor outputs;
  {
    const Autocast autocast(Precision::bfloat16, at::kCPU);
    outputs = at::linear(inputs, weight);
  }
  EXPECT_EQ(outputs.scalar_type(), at::kBFloat16);
  EXPECT_EQ(weight.scalar_type(), at::kFloat);
  outputs.to(at::kFloat).sum().backward();
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  const at::Tensor exact = at::linear(inputs, weight);
  EXPECT_FALSE(outputs.to(at::kFloat).equal(exact));
  EXPECT_TRUE(outputs.to(at::kFloat).allclose(exact, 1. / 128, 0.15));
  EXPECT_TRUE(weight.grad().allclose(inputs.sum(0).expand({10, 20}), 1. / 64, 0.05));
}

TEST(Autocast, EndsWithItsScopeAndIsNothingForFloat32) {
  const at::Tensor a = at::randn({3, 3});
  { const Autocast autocast(Precision::bfloat16, at::kCPU); }
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
  const Autocast autocast(Precision::float32, at::kCPU);
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kFloat);
}

TEST(Autocast, ParametersAreCopiedAnewInEachScope) {
  const at::Tensor weight = at::ones({3, 3}).requires_grad_(true);
  const at::Tensor inputs = at::ones({1, 3});
  for (const float value : {1.F, 2.F, 4.F}) {
    weight.detach().fill_(value);
    const Autocast autocast(Precision::bfloat16, at::kCPU);
    EXPECT_EQ(at::linear(inputs, weight)[0][0].item<float>(), 3 * value);
  }
}

TEST(Autocast, OneInsideAnotherLeavesTheOuterOneOn) {
  const at::Tensor a = at::randn({3, 3});
  const Autocast outer(Precision::bfloat16, at::kCPU);
  { const Autocast inner(Precision::bfloat16, at::kCPU); }
  EXPECT_EQ(at::mm(a, a).scalar_type(), at::kBFloat16);
}
