// SPDX-License-Identifier: MIT
// The two-stage pipeline against numbers that a Python script works out from the tutorial's prose.
#include "trainer/reinforcement/pipeline.h"

#include <gtest/gtest.h>

#include <array>
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
    PipelineSettings settings;
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
}

TEST(Pipeline, PiecesThatDoNotFitAreRefusedWithTheirLengths) {
  EXPECT_EQ(mistake_of({1000, 900, 30}, {}, {4, 60, 60}),
            "pipeline.steps is 1000, but the first stage with its 2 % more takes 918 and the "
            "transition on 4 nodes 120");
  EXPECT_EQ(mistake_of({1000, 900, 30}, {}, {2, 60, 60}), "none");
  EXPECT_EQ(mistake_of({1000, 100, 30}, {3, 4}, {2, 4, 4}),
            "6 mini-batches cannot be made of a rank's 4 samplers (ppo.num_mini_batch, multiplied "
            "in the first stage for 2 nodes)");
}

TEST(Pipeline, RanksThatShareANodesSamplersHaveAPartOfEveryMiniBatch) {
  // Eight ranks of 60 samplers have 7 or 8. The tutorial's three nodes have room for their parts.
  const auto first_stage = [](const UpdateSettings& base, const Nodes& nodes) {
    return plan_pipeline({}, base, nodes).stages[0].update;
  };
  EXPECT_EQ(first_stage({1, 4}, {3, 60, 7}).num_mini_batch, 3);
  EXPECT_EQ(first_stage({1, 4}, {3, 60, 7}).update_repeats, 4);
  // Twelve nodes would make 12 parts; of 4 each rank has one, and the rest is repeated.
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 60}).num_mini_batch, 12);
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 7}).num_mini_batch, 4);
  EXPECT_EQ(first_stage({1, 4}, {12, 60, 7}).update_repeats, 12);
  EXPECT_EQ(first_stage({4, 4}, {12, 60, 7}).num_mini_batch, 4);
  EXPECT_EQ(first_stage({4, 4}, {12, 60, 7}).update_repeats, 48);
  EXPECT_EQ(mistake_of({}, {8, 4}, {3, 60, 7}),
            "8 mini-batches cannot be made of a rank's 7 samplers (ppo.num_mini_batch, multiplied "
            "in the first stage for 3 nodes)");
}
