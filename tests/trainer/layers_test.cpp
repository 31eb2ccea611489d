// SPDX-License-Identifier: MIT
#include "trainer/settings/model_settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/experiment_text.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

Shape shape_after(const std::vector<std::string>& words, const Shape& in) {
  std::vector<Layer> layers;
  for (const std::string& each : words) layers.push_back(parse_layer(each));
  return shapes_along(layers, in).back();
}

std::string mistake_in(const std::string& words) {
  return mistake_of([&] { parse_layer(words); });
}

}  // namespace

TEST(Layers, AreReadFromTheirWords) {
  const Layer convolution = parse_layer("conv 8 3 stride 2 padding 1");
  EXPECT_EQ(convolution.kind, LayerKind::convolution);
  EXPECT_EQ(convolution.width, 8);
  EXPECT_EQ(convolution.kernel, 3);
  EXPECT_EQ(convolution.stride, 2);
  EXPECT_EQ(convolution.padding, 1);
  EXPECT_EQ(parse_layer("  linear   50 ").width, 50);
  EXPECT_DOUBLE_EQ(parse_layer("dropout 0.25").share, 0.25);
  EXPECT_EQ(parse_layer("max_pool 2").stride, 2);
  EXPECT_EQ(parse_layer("average_pool 3 stride 1").stride, 1);
}

TEST(Layers, MistakesAreNamed) {
  EXPECT_EQ(mistake_in("liner 50"),
            "layer 'liner 50': no layer is called 'liner' / did you mean 'linear'?");
  EXPECT_EQ(mistake_in("linear"),
            "layer 'linear': the number of outputs must be from 1 to 16777216, not '' / ");
  EXPECT_EQ(mistake_in("linear 5x"),
            "layer 'linear 5x': the number of outputs must be from 1 to 16777216, not '5x' / ");
  EXPECT_EQ(mistake_in("conv 8 0"),
            "layer 'conv 8 0': the kernel must be from 1 to 1024, not '0' / ");
  EXPECT_EQ(mistake_in("dropout 1"),
            "layer 'dropout 1': the share must be from 0 to 0.999, not '1' / ");
  EXPECT_EQ(mistake_in("dropout nan"),
            "layer 'dropout nan': the share must be from 0 to 0.999, not 'nan' / ");
  EXPECT_EQ(mistake_in("relu 5"), "layer 'relu 5': '5' is one word too many / such as \"relu\"");
  EXPECT_EQ(mistake_in("average_pool 2 padding 1"),
            "layer 'average_pool 2 padding 1': 'padding' is one word too many / such as "
            "\"average_pool 2\"");
  EXPECT_EQ(mistake_in("max_pool 3 padding 2"),
            "layer 'max_pool 3 padding 2': the padding must be from 0 to 1, not '2' / ");
  EXPECT_NE(mistake_in(""), "none");
}

TEST(Layers, ShapesFollowFromTheOneBefore) {
  const Shape image = {1, 28, 28};
  EXPECT_EQ(shape_after({"conv 8 3"}, image), (Shape{8, 26, 26}));
  EXPECT_EQ(shape_after({"conv 8 3 padding 1 stride 2"}, image), (Shape{8, 14, 14}));
  EXPECT_EQ(shape_after({"max_pool 2"}, {8, 27, 27}), (Shape{8, 13, 13}));
  EXPECT_EQ(shape_after({"max_pool 3 stride 2 padding 1"}, {8, 27, 27}), (Shape{8, 14, 14}));
  EXPECT_EQ(shape_after({"batch_norm"}, image), image);
  EXPECT_EQ(shape_after({"group_norm 4"}, {8, 2, 2}), (Shape{8, 2, 2}));
  EXPECT_EQ(shape_after({"linear 5"}, image), (Shape{5}));
  EXPECT_THROW(shape_after({"conv 8 3"}, {784}), UsageError);
  EXPECT_THROW(shape_after({"conv 8 5"}, {1, 4, 4}), UsageError);
  EXPECT_THROW(shape_after({"group_norm 3"}, {8, 2, 2}), UsageError);
}

TEST(Layers, WhatIsKeptIsAddedInTheSameShape) {
  const std::vector<std::string> block = {"skip", "conv 8 3 stride 2 padding 1", "swap",
                                          "conv 8 1 stride 2", "add"};
  EXPECT_EQ(shape_after(block, {4, 28, 28}), (Shape{8, 14, 14}));
  EXPECT_EQ(mistake_of([] {
              shape_after({"skip", "conv 8 3", "add"}, {4, 28, 28});
            }),
            "layer 'add' gets 8 x 26 x 26 values, but 4 x 28 x 28 are kept / ");
  EXPECT_EQ(mistake_of([] {
              shape_after({"relu", "swap"}, {4});
            }),
            "layer 'swap' has no 'skip' before it / ");
  EXPECT_EQ(mistake_of([] {
              shape_after({"skip", "relu"}, {4});
            }),
            "layer 'skip' has no 'add' after it / ");
}

TEST(Layers, TheirCostIsCounted) {
  EXPECT_EQ(multiply_adds(parse_layer("linear 50"), {1, 28, 28}), 784 * 50);
  EXPECT_EQ(multiply_adds(parse_layer("conv 8 3"), {2, 5, 5}), 8 * 3 * 3 * 2 * 9);
}
