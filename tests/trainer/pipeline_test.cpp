// SPDX-License-Identifier: MIT
// The two-stage pipeline: with whole rollouts against numbers that a Python script works out from
// the tutorial's prose, with shared ones against arithmetic on the number of nodes.
#include "trainer/reinforcement/ppo_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

/// What a program prints; empty where it fails.
std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t size; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), size);
  }
  return pclose(pipe) == 0 ? text : "";
}

PipelineSettings whole_rollouts(PipelineSettings settings = {}) {
  settings.rollouts = Rollouts::whole;
  return settings;
}

/// What both stages do on so many nodes of 60 samplers, and the last one's rate.
struct Shared {
  UpdateSettings small;
  UpdateSettings large;
  double factor;
};
Shared share(std::int64_t nodes, const UpdateSettings& base) {
  const Pipeline pipeline = plan_pipeline({}, base, {nodes, 60, 60});
  return {pipeline.stages.at(0).update, pipeline.stages.at(1).update,
          pipeline.learning_rate_factor};
}

std::string mistake_of(const PipelineSettings& settings, const UpdateSettings& base,
                       const Nodes& nodes) {
  try {
    plan_pipeline(settings, base, nodes);
  } catch (const UsageError& mistake) {
    return mistake.what();
  }
  return "none";
}

}  // namespace

TEST(Pipeline, IsTheTutorialsForEveryNumberOfSamplersAndNodes) {
  if (std::system("command -v python3 > /dev/null") != 0) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << "python3 is not installed";
    GTEST_SKIP() << "needs python3";
  }
  std::istringstream lines(
      output_of("python3 " DTOOL_SOURCE_DIR "/tests/trainer/pipeline_reference.py"));
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::int64_t samplers{}, nodes{}, mini_batches{}, repeats{};
    PipelineSettings settings = whole_rollouts();
    words >> samplers >> nodes >> settings.steps >> settings.small_batch_steps >> mini_batches >>
        repeats;
    settings.transition_steps_per_node = static_cast<double>(settings.steps) / 450;
    const Pipeline pipeline = plan_pipeline(settings, {1, 4}, {nodes, samplers, samplers});
    SCOPED_TRACE(line.substr(0, 60));
    ASSERT_EQ(pipeline.stages.size(), settings.small_batch_steps > 0 ? 2U : 1U);
    if (settings.small_batch_steps > 0) {
      EXPECT_EQ(pipeline.stages[0].end, settings.small_batch_steps);
      EXPECT_EQ(pipeline.stages[0].update.num_mini_batch, mini_batches);
      EXPECT_EQ(pipeline.stages[0].update.update_repeats, 4 * repeats);
    }
    EXPECT_EQ(pipeline.stages.back().update.num_mini_batch, 1);
    EXPECT_EQ(pipeline.stages.back().update.update_repeats, 4);
    double time{}, factor{};
    for (char colon; words >> time >> colon >> factor; ++compared) {
      EXPECT_NEAR(learning_rate_factor(pipeline.schedule, time), factor, 1e-9) << time;
    }
  }
  EXPECT_EQ(compared, 5 * 9 * 3 * 104);
}

TEST(Pipeline, OneNodeHasTheBaseThroughout) {
  const Pipeline pipeline = plan_pipeline({}, {2, 3}, {1, 60, 60});
  for (const PipelineStage& each : pipeline.stages) {
    EXPECT_EQ(each.update.num_mini_batch, 2);
    EXPECT_EQ(each.update.update_repeats, 3);
  }
  for (const double time : {0.0, 1e6, 30e6, 31e6, 150e6, 299e6}) {
    EXPECT_NEAR(learning_rate_factor(pipeline.schedule, time), 1 - time / 300e6, 1e-12);
  }
}

TEST(Pipeline, AStageEndsWithItsExperienceAndTheRunWithItsLast) {
  const Pipeline pipeline = plan_pipeline({}, {}, {8, 60, 60});
  EXPECT_EQ(pipeline.stage_at(0), 0U);
  EXPECT_EQ(pipeline.stage_at(29'999'999), 0U);
  EXPECT_EQ(pipeline.stage_at(30'000'000), 1U);
  EXPECT_EQ(pipeline.stage_at(400'000'000), 1U);
  EXPECT_FALSE(pipeline.is_over(299'999'999));
  EXPECT_TRUE(pipeline.is_over(300'000'000));
  PipelineSettings short_first;
  short_first.small_batch_steps = 1;
  EXPECT_EQ(plan_pipeline(short_first, {}, {8, 60, 60}).stages.size(), 2U);
}

TEST(Pipeline, PiecesThatDoNotFitAreRefusedWithTheirLengths) {
  EXPECT_EQ(mistake_of(whole_rollouts({1000, 900, 30}), {}, {4, 60, 60}),
            "pipeline.steps is 1000, but the first stage with its 2 % more takes 918 and the "
            "transition to batches of 4 nodes 120");
  EXPECT_EQ(mistake_of({1000, 900, 30}, {}, {16, 60, 60}),
            "pipeline.steps is 1000, but the first stage with its 2 % more takes 918 and the "
            "transition to batches of 4 nodes 120");
  EXPECT_EQ(mistake_of(whole_rollouts({1000, 900, 30}), {}, {2, 60, 60}), "none");
  EXPECT_EQ(mistake_of(whole_rollouts({1000, 900, 41}), {}, {2, 60, 60}), "none") << "just so long";
  EXPECT_EQ(mistake_of({1000, 900, 90}, {}, {1, 60, 60}),
            "pipeline.steps is 1000, but the first stage with its 2 % more takes 918 and the "
            "transition to batches of 1 node 90");
  EXPECT_EQ(mistake_of({1000, 100, 30}, {60, 4}, {1, 60, 60}), "none");
  EXPECT_EQ(mistake_of({1000, 100, 30}, {61, 4}, {1, 60, 60}),
            "61 mini-batches cannot be made of a rank's 60 samplers (ppo.num_mini_batch, "
            "multiplied in the first stage for 1 node)");
  EXPECT_EQ(mistake_of(whole_rollouts({1000, 100, 30}), {3, 4}, {2, 4, 4}),
            "6 mini-batches cannot be made of a rank's 4 samplers (ppo.num_mini_batch, multiplied "
            "in the first stage for 2 nodes)");
}

TEST(Pipeline, RanksThatShareANodesSamplersHaveAPartOfEveryMiniBatch) {
  // Eight ranks of 60 samplers have 7 or 8. The tutorial's three nodes have room for their parts.
  const auto first_stage = [](const UpdateSettings& base, const Nodes& nodes) {
    return plan_pipeline(whole_rollouts(), base, nodes).stages[0].update;
  };
  EXPECT_EQ(first_stage({1, 4}, {3, 60, 7}).num_mini_batch, 3);
  EXPECT_EQ(first_stage({1, 4}, {3, 60, 7}).update_repeats, 4);
  // Twelve nodes would make 12 parts; of 4 each rank has one, and the rest is repeated.
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 60}).num_mini_batch, 12);
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 7}).num_mini_batch, 4);
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 7}).update_repeats, 12);
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 6}).num_mini_batch, 3) << "of six neighbours";
  EXPECT_EQ(first_stage({4, 4}, {12, 60, 60}).num_mini_batch, 48) << "no rank shares them";
  EXPECT_EQ(first_stage({1, 4}, {2, 1, 1}).num_mini_batch, 1) << "one sampler";
  EXPECT_EQ(first_stage({4, 4}, {12, 60, 7}).num_mini_batch, 4);
  EXPECT_EQ(first_stage({4, 4}, {12, 60, 7}).update_repeats, 48);
  EXPECT_EQ(mistake_of(whole_rollouts(), {8, 4}, {3, 60, 7}),
            "8 mini-batches cannot be made of a rank's 7 samplers (ppo.num_mini_batch, multiplied "
            "in the first stage for 3 nodes)");
}

TEST(Pipeline, NodesThatShareARolloutMakeOneNodesUpdatesAtFirst) {
  const UpdateSettings base = {4, 3, 128};
  for (const std::int64_t nodes : {1, 2, 4, 8}) {
    SCOPED_TRACE(nodes);
    const Shared on = share(nodes, base);
    EXPECT_EQ(on.small.num_steps * nodes, 128);
    EXPECT_EQ(on.small.num_mini_batch, 4);
    EXPECT_EQ(on.small.update_repeats, 3);
  }
  // 128 / 3 is 42.67.
  EXPECT_EQ(share(3, base).small.num_steps, 43);
}

TEST(Pipeline, TheirLaterBatchesGrowWithTheRootOfTheNodesAndTheRateWithThatOfTheBatches) {
  const UpdateSettings base = {4, 3, 128};
  for (const std::int64_t nodes : {1, 4, 16, 64}) {
    SCOPED_TRACE(nodes);
    const Shared on = share(nodes, base);
    const double root = std::sqrt(static_cast<double>(nodes));
    EXPECT_DOUBLE_EQ(static_cast<double>(on.large.num_steps), 128 / root);
    EXPECT_EQ(on.large.num_mini_batch, 4);
    EXPECT_EQ(on.large.update_repeats, 3);
    EXPECT_DOUBLE_EQ(on.factor, std::sqrt(root));
  }
  // 128 / sqrt(8) is 45.25, so the batches are 8 x 45 / 128 times one node's.
  EXPECT_EQ(share(8, base).large.num_steps, 45);
  EXPECT_DOUBLE_EQ(share(8, base).factor, std::sqrt(8 * 45 / 128.0));
  const Pipeline four = plan_pipeline({}, base, {4, 60, 60});
  EXPECT_NEAR(learning_rate_factor(four.schedule, 20e6), 1 - 20.0 / 300, 1e-12);
  EXPECT_NEAR(learning_rate_factor(four.schedule, 150e6), std::sqrt(2.0) / 2, 1e-12);
  // The transition takes the steps of two nodes, since the batches are those of two.
  EXPECT_NEAR(learning_rate_factor(four.schedule, 30.6e6), 1 - 30.6 / 300, 1e-9);
  EXPECT_NEAR(learning_rate_factor(four.schedule, 30.6e6 + 2 * 2e6 / 3),
              std::sqrt(2.0) * (1 - (30.6 + 4.0 / 3) / 300), 1e-6);
}

TEST(Pipeline, NoSharedRolloutIsShorterThanSixteenStepsUnlessOneNodesIs) {
  EXPECT_EQ(share(32, {1, 4, 128}).small.num_steps, 16);
  EXPECT_EQ(share(32, {1, 4, 128}).large.num_steps, 23);
  EXPECT_EQ(share(200, {1, 4, 128}).large.num_steps, 16);
  EXPECT_DOUBLE_EQ(share(200, {1, 4, 128}).factor, 5);  // batches of 200 x 16 / 128 nodes
  EXPECT_EQ(share(8, {1, 4, 10}).small.num_steps, 10);
  EXPECT_EQ(share(8, {1, 4, 10}).large.num_steps, 10);
  EXPECT_DOUBLE_EQ(share(4, {1, 4, 10}).factor, 2);
}

TEST(Pipeline, RolloutStepsAndTheRateCanBeSetByHand) {
  PipelineSettings settings;
  settings.rollout_steps = {8, 100};
  const Pipeline by_steps = plan_pipeline(settings, {1, 4, 128}, {8, 60, 60});
  EXPECT_EQ(by_steps.stages[0].update.num_steps, 8);
  EXPECT_EQ(by_steps.stages[1].update.num_steps, 100);
  EXPECT_EQ(by_steps.longest_rollout(), 100);
  EXPECT_DOUBLE_EQ(by_steps.learning_rate_factor, std::sqrt(800 / 128.0));
  settings.learning_rate_factor = 1.5;
  const Pipeline by_hand = plan_pipeline(settings, {1, 4, 128}, {8, 60, 60});
  EXPECT_NEAR(learning_rate_factor(by_hand.schedule, 150e6), 0.75, 1e-12);
  settings.rollout_steps = {8};
  EXPECT_EQ(mistake_of(settings, {}, {8, 60, 60}),
            "pipeline.rollout_steps has 1 number, but the run has 2 stages");
  settings.small_batch_steps = 0;
  EXPECT_EQ(mistake_of(settings, {}, {8, 60, 60}), "none");
  settings.rollout_steps = {100, 8};
  EXPECT_EQ(mistake_of(settings, {}, {8, 60, 60}),
            "pipeline.rollout_steps has 2 numbers, but the run has 1 stage");
  settings.small_batch_steps = 1000;
  EXPECT_EQ(plan_pipeline(settings, {1, 4, 128}, {8, 60, 60}).longest_rollout(), 100);
}
