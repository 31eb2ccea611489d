// SPDX-License-Identifier: MIT
#include "cli/plot/plot_sources.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dtool::cli {
namespace {

const Curve& curve_of(const Metrics& metrics, const std::string& name) {
  for (const Curve& curve : metrics.curves) {
    if (curve.metric == name) return curve;
  }
  throw std::runtime_error("no curve " + name);
}

TEST(Metrics, each_number_of_a_step_is_a_point_of_its_curve) {
  const Metrics metrics = read_metrics(
      R"({"event": "start", "time": 5, "seed": 7, "world_size": 2, "step": 0})"
      "\n"
      R"({"event": "step", "time": 6, "epoch": 1, "step": 100, "loss": 0.5, "learning_rate": 0.001})"
      "\n"
      R"({"event": "step", "time": 7, "epoch": 1, "step": 200, "loss": 0.25, "learning_rate": 0.001})"
      "\n"
      R"({"event": "epoch", "epoch": 1, "step": 200, "loss": 0.4, "test_accuracy": 0.9})"
      "\n");
  ASSERT_EQ(metrics.curves.size(), 3U);
  EXPECT_EQ(curve_of(metrics, "loss").event, "step");
  EXPECT_EQ(curve_of(metrics, "loss").steps, (std::vector<double>{100, 200}));
  EXPECT_EQ(curve_of(metrics, "loss").values, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(curve_of(metrics, "test_accuracy").event, "epoch");
  EXPECT_EQ(curve_of(metrics, "test_accuracy").values, (std::vector<double>{0.9}));
  EXPECT_EQ(metrics.unread, 0U);
}

TEST(Metrics, a_start_line_makes_the_steps_after_its_own_void) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"start\",\"step\":0}\n"
      "{\"event\":\"step\",\"step\":1,\"loss\":4}\n"
      "{\"event\":\"step\",\"step\":2,\"loss\":3}\n"
      "{\"event\":\"step\",\"step\":3,\"loss\":99}\n"
      "{\"event\":\"start\",\"step\":2,\"resumed_from\":\"x.pt\"}\n"
      "{\"event\":\"step\",\"step\":3,\"loss\":2}\n");
  EXPECT_EQ(curve_of(metrics, "loss").steps, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(curve_of(metrics, "loss").values, (std::vector<double>{4, 3, 2}));
}

TEST(Metrics, a_run_begun_anew_in_the_same_folder_replaces_the_former_one) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"step\",\"step\":9,\"loss\":1}\n{\"event\":\"start\",\"step\":0}\n");
  EXPECT_TRUE(metrics.curves.empty());
  const Metrics without = read_metrics(
      "{\"event\":\"step\",\"step\":9,\"loss\":1}\n{\"event\":\"start\",\"seed\":7}\n");
  EXPECT_TRUE(without.curves.empty());
  EXPECT_EQ(without.unread, 0U);
}

TEST(Metrics, seconds_count_what_was_gone_through_again_and_not_the_time_between) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"start\",\"time\":1000,\"step\":0}\n"
      "{\"event\":\"step\",\"time\":1010,\"step\":1,\"loss\":4}\n"
      "{\"event\":\"step\",\"time\":1020,\"step\":2,\"loss\":99}\n"
      "{\"event\":\"start\",\"time\":5000,\"step\":1,\"resumed_from\":\"x.pt\"}\n"
      "{\"event\":\"step\",\"time\":5010,\"step\":2,\"loss\":3}\n"
      "{\"event\":\"validation\",\"time\":1010,\"step\":1,\"validation_success\":0.5}\n");
  EXPECT_EQ(curve_of(metrics, "loss").seconds, (std::vector<double>{10, 30}));
  EXPECT_EQ(curve_of(metrics, "validation_success").seconds, (std::vector<double>{10}));
}

TEST(Metrics, seconds_are_left_out_where_a_line_has_no_time) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"step\",\"time\":10,\"step\":1,\"loss\":4}\n"
      "{\"event\":\"step\",\"step\":2,\"loss\":3}\n");
  EXPECT_EQ(curve_of(metrics, "loss").steps.size(), 2U);
  EXPECT_TRUE(curve_of(metrics, "loss").seconds.empty());
}

TEST(Metrics, a_line_that_comes_late_is_put_in_its_place) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"validation\",\"step\":10,\"validation_success\":0.1}\n"
      "{\"event\":\"validation\",\"step\":30,\"validation_success\":0.3}\n"
      "{\"event\":\"validation\",\"step\":20,\"validation_success\":0.2}\n");
  EXPECT_EQ(curve_of(metrics, "validation_success").values, (std::vector<double>{0.1, 0.2, 0.3}));
}

TEST(Metrics, a_start_line_leaves_what_a_following_run_validated_later) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"validation\",\"time\":5,\"step\":40,\"validation_success\":0.9}\n"
      "{\"event\":\"validation\",\"time\":1020,\"step\":20,\"validation_success\":0.2}\n"
      "{\"event\":\"start\",\"time\":1000,\"step\":0}\n"
      "{\"event\":\"step\",\"time\":1030,\"step\":30,\"loss\":4}\n");
  EXPECT_EQ(curve_of(metrics, "validation_success").steps, (std::vector<double>{20}));
  EXPECT_EQ(curve_of(metrics, "validation_success").seconds, (std::vector<double>{20}));
}

TEST(Metrics, a_loss_that_is_no_number_is_a_gap) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"step\",\"step\":1,\"loss\":null}\n"
      "{\"event\":\"step\",\"step\":2,\"loss\":NaN}\n"
      "{\"event\":\"step\",\"step\":3,\"loss\":-Infinity}\n"
      "{\"event\":\"step\",\"step\":4,\"loss\":1}\n");
  const Curve& loss = curve_of(metrics, "loss");
  ASSERT_EQ(loss.values.size(), 4U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(loss.values[static_cast<std::size_t>(i)]));
  EXPECT_EQ(loss.values[3], 1);
  EXPECT_EQ(metrics.unread, 0U);
}

TEST(Metrics, the_event_that_tells_more_often_gives_the_curve) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"step\",\"step\":3,\"loss\":9}\n"
      "{\"event\":\"epoch\",\"step\":2,\"loss\":4}\n"
      "{\"event\":\"epoch\",\"step\":4,\"loss\":3}\n");
  EXPECT_EQ(curve_of(metrics, "loss").event, "epoch");
  EXPECT_EQ(curve_of(metrics, "loss").values, (std::vector<double>{4, 3}));
}

TEST(Metrics, a_line_still_being_written_is_left_out_and_spoilt_ones_are_counted) {
  const Metrics metrics = read_metrics(
      "{\"event\":\"step\",\"step\":1,\"loss\":9}\n"
      "what is this\n"
      "\n"
      "[1, 2]\n"
      "{\"event\":\"step\",\"step\":\"two\",\"loss\":9}\n"
      "{\"event\":\"step\",\"step\":2,\"lo");
  EXPECT_EQ(curve_of(metrics, "loss").steps, (std::vector<double>{1}));
  EXPECT_EQ(metrics.unread, 3U);
  EXPECT_EQ(metrics.first_unread, 2U);
}

TEST(Metrics, any_object_of_numbers_is_a_line) {
  const Metrics metrics = read_metrics(
      "{\"acc\": 0.5, \"eval\": {\"acc\": 0.25, \"by\": {\"cat\": 1}}, \"ok\": true}\n"
      "{\"acc\": 0.75, \"name\": \"x\", \"eval\": {\"acc\": NaN}}\n");
  EXPECT_EQ(curve_of(metrics, "acc").steps, (std::vector<double>{1, 2}));
  EXPECT_EQ(curve_of(metrics, "acc").values, (std::vector<double>{0.5, 0.75}));
  EXPECT_TRUE(std::isnan(curve_of(metrics, "eval.acc").values[1]));
  EXPECT_EQ(curve_of(metrics, "eval.by.cat").values, (std::vector<double>{1}));
  EXPECT_EQ(metrics.curves.size(), 3U);
  EXPECT_EQ(metrics.unread, 0U);
  EXPECT_FALSE(metrics.is_trainers);
  EXPECT_EQ(curve_of(read_metrics("{\"iter\": 7, \"loss\": 1}\n"), "loss").steps,
            (std::vector<double>{7}));
  EXPECT_EQ(curve_of(read_metrics("{\"epoch\": 3, \"loss\": 1}\n"), "loss").steps,
            (std::vector<double>{3}));
}

TEST(Metrics, bytes_of_any_kind_are_no_trouble) {
  EXPECT_EQ(read_metrics(std::string("\xff\x00\n{\n}\n\"\\\n", 9)).curves.size(), 0U);
  EXPECT_EQ(read_metrics("").unread, 0U);
}

}  // namespace
}  // namespace dtool::cli
