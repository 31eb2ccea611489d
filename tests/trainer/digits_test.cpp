// SPDX-License-Identifier: MIT
#include "trainer/data/drawn_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace dtool::trainer;

TEST(Digits, AreTheSameForTheSameSeed) {
  const auto drawn = draw_digits(50, 3);
  EXPECT_EQ(drawn.images, draw_digits(50, 3).images);
  EXPECT_EQ(drawn.labels, draw_digits(50, 3).labels);
  EXPECT_NE(drawn.images, draw_digits(50, 4).images);
}

TEST(Digits, BeginAlikeHoweverManyAreDrawn) {
  const auto few = draw_digits(10, 3);
  const auto many = draw_digits(20, 3);
  EXPECT_TRUE(std::equal(few.images.begin(), few.images.end(), many.images.begin()));
}

TEST(Digits, HaveInkAndEveryLabel) {
  const auto drawn = draw_digits(300, 0);
  EXPECT_EQ(drawn.pixels, 28 * 28);
  EXPECT_EQ(drawn.images.size(), 300u * 28 * 28);
  EXPECT_EQ(std::set<std::uint8_t>(drawn.labels.begin(), drawn.labels.end()).size(), 10u);
  for (int i = 0; i < 300; ++i) {
    const auto image = drawn.images.begin() + i * 28 * 28;
    EXPECT_GE(std::count_if(image, image + 28 * 28, [](auto grey) { return grey > 128; }), 15)
        << "image " << i << " is empty";
  }
}

TEST(Digits, AreTheSameOnEveryMachine) {
  // Sums, so that a pixel that a processor rounds otherwise is not seen, and a shape that is drawn
  // otherwise is.
  double ink = 0, across = 0, down = 0, square = 0;
  const auto drawn = draw_digits(400, 1);
  for (std::size_t i = 0; i < drawn.images.size(); ++i) {
    const double grey = drawn.images[i];
    ink += grey;
    across += grey * static_cast<double>(i % 28);
    down += grey * static_cast<double>(i / 28 % 28);
    square += grey * static_cast<double>(i % 997) * static_cast<double>(drawn.labels[i / 784] + 1);
  }
  EXPECT_NEAR(ink, 11074731, 5);
  EXPECT_NEAR(across, 152173600, 50);
  EXPECT_NEAR(down, 147570830, 50);
  EXPECT_NEAR(square, 29507270715, 50000);
}
