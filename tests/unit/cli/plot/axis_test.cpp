// SPDX-License-Identifier: MIT
#include "cli/plot/panel.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> all;
  for (const Tick& tick : axis.ticks) all.push_back(tick.label);
  return all;
}

using Labels = std::vector<std::string>;

TEST(Axis, has_round_numbers) {
  EXPECT_EQ(labels(make_axis(0, 1, Scale::linear, 6)),
            (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels(make_axis(0.13, 2.4, Scale::linear, 5)), (Labels{"0.5", "1.0", "1.5", "2.0"}));
  EXPECT_EQ(labels(make_axis(100, 4690, Scale::linear, 5)),
            (Labels{"1000", "2000", "3000", "4000"}));
  EXPECT_EQ(labels(make_axis(-3, 3, Scale::linear, 4)), (Labels{"-2", "0", "2"}));
}

TEST(Axis, writes_large_and_small_numbers_short) {
  EXPECT_EQ(labels(make_axis(0, 76000, Scale::linear, 4)), (Labels{"0", "20k", "40k", "60k"}));
  EXPECT_EQ(labels(make_axis(0, 2.5e6, Scale::linear, 3)), (Labels{"0", "1M", "2M"}));
  EXPECT_EQ(labels(make_axis(0, 1e-5, Scale::linear, 3)), (Labels{"0", "5e-6", "1.0e-5"}));
  EXPECT_EQ(labels(make_axis(2.5e-5, 3.5e-5, Scale::linear, 3)),
            (Labels{"2.5e-5", "3.0e-5", "3.5e-5"}));
  EXPECT_EQ(labels(make_axis(0, 0.001, Scale::linear, 3)), (Labels{"0", "0.0005", "0.0010"}));
}

TEST(Axis, of_decades_has_powers_of_ten_and_of_less_what_lies_between) {
  EXPECT_EQ(labels(make_axis(0.001, 10, Scale::log, 5)),
            (Labels{"0.001", "0.01", "0.1", "1", "10"}));
  EXPECT_EQ(labels(make_axis(0.5, 9, Scale::log, 5)), (Labels{"0.5", "1", "2", "5"}));
  EXPECT_EQ(labels(make_axis(1e-7, 1, Scale::log, 4)), (Labels{"1e-6", "0.0001", "0.01", "1"}));
}

TEST(Axis, of_a_constant_is_widened_around_it) {
  const Axis constant = make_axis(0.001, 0.001, Scale::linear, 4);
  EXPECT_DOUBLE_EQ(constant.place(0.001), 0.5);
  EXPECT_GE(constant.ticks.size(), 2U);
  EXPECT_DOUBLE_EQ(make_axis(0, 0, Scale::linear, 4).place(0), 0.5);
  EXPECT_GE(make_axis(3, 3, Scale::log, 4).ticks.size(), 2U);
}

TEST(Axis, keeps_its_promise_on_numbers_of_every_size) {
  for (int power = -30; power <= 30; ++power) {
    for (const double share : {0.001, 0.3, 1.0}) {
      const double high = std::stod("1e" + std::to_string(power)) * 3.7;
      for (const Scale scale : {Scale::linear, Scale::log}) {
        const Axis axis = make_axis(high * (1 - share * 0.999), high, scale, 6);
        EXPECT_GE(axis.ticks.size(), 2U) << high << " " << share;
        EXPECT_LE(axis.ticks.size(), 6U) << high << " " << share;
        for (std::size_t i = 0; i + 1 < axis.ticks.size(); ++i) {
          EXPECT_LT(axis.place(axis.ticks[i].at), axis.place(axis.ticks[i + 1].at));
          EXPECT_NE(axis.ticks[i].label, axis.ticks[i + 1].label);
        }
      }
    }
  }
}

TEST(Axis, places_by_ratio_where_the_scale_is_log) {
  EXPECT_DOUBLE_EQ(make_axis(1, 100, Scale::log, 3).place(10), 0.5);
  EXPECT_DOUBLE_EQ(make_axis(1, 101, Scale::linear, 3).place(51), 0.5);
}

}  // namespace
}  // namespace dtool::cli
