// SPDX-License-Identifier: MIT
// The tables of an objectnav experiment: defaults, what a short run makes of them, and mistakes.
#include "trainer/objectnav/objectnav_settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/trainer/experiment_text.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

Experiment parse(const std::string& rest) {
  return experiment_of("workload = 'objectnav'\n" + rest, "objectnav_settings_test.toml");
}

std::string mistake_in(const std::string& rest) {
  try {
    parse(rest);
  } catch (const UsageError& mistake) {
    return line_and_fault(mistake);
  }
  return "none";
}

/// The keys' values that the settings table shows.
std::vector<std::string> values_of(const Experiment& experiment) {
  std::vector<std::string> values;
  for (const Setting& each : experiment.settings) {
    if (each.key != "distributed_nodes" && each.key != "pipeline.transition_steps_per_node") {
      values.push_back(each.key + " = " + each.value);
    }
  }
  return values;
}

}  // namespace

TEST(ObjectNavSettings, DefaultsAreThoseOfTheTutorial) {
  const Experiment experiment = parse("");
  const DdPpoSettings& settings = objectnav_of(experiment).learning;
  EXPECT_EQ(settings.samplers, 60);
  EXPECT_EQ(settings.samplers_per, SamplersPer::machine);
  EXPECT_EQ(settings.ppo.num_steps, 128);
  EXPECT_EQ(settings.ppo.num_mini_batch, 1);
  EXPECT_EQ(settings.ppo.update_repeats, 4);
  EXPECT_DOUBLE_EQ(settings.ppo.gamma, 0.99);
  EXPECT_DOUBLE_EQ(settings.ppo.gae_lambda, 0.95);
  EXPECT_EQ(settings.pipeline.steps, 300'000'000);
  EXPECT_EQ(settings.pipeline.small_batch_steps, 60'000'000);
  EXPECT_DOUBLE_EQ(settings.pipeline.transition_steps_per_node, 2.0 / 3 * 1e6);
  EXPECT_EQ(experiment.checkpoint.every_steps, 5'000'000);
  EXPECT_EQ(experiment.optimizer.kind, OptimizerKind::adam);
  EXPECT_DOUBLE_EQ(experiment.optimizer.learning_rate, 3e-4);
  EXPECT_DOUBLE_EQ(experiment.optimizer.clip_norm, 0.5);
  EXPECT_EQ(experiment.optimizer.scaling, Scaling::none);
}

TEST(ObjectNavSettings, TheDocumentedDefaultsAreTheProgramsOwn) {
  std::ifstream stream(std::filesystem::path(DTOOL_SOURCE_DIR) / "docs/experiment.md");
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const std::string fence = "```toml\nworkload = \"objectnav\"";
  const auto begin = page.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::string text =
      page.substr(begin + fence.size(), page.find("\n```", begin) - begin - fence.size());
  EXPECT_EQ(values_of(parse(text + "\n")), values_of(parse("")));
}

TEST(ObjectNavSettings, AShorterRunHasTheSameShape) {
  const Experiment experiment = parse("pipeline.steps = 6_000_000\npipeline.rollouts = 'whole'\n");
  const DdPpoSettings& settings = objectnav_of(experiment).learning;
  EXPECT_EQ(settings.pipeline.small_batch_steps, 600'000);
  EXPECT_DOUBLE_EQ(settings.pipeline.transition_steps_per_node, 6e6 / 450);
  EXPECT_EQ(settings.validation.every_steps, 300'000);
  EXPECT_EQ(experiment.checkpoint.every_steps, 100'000);
  const Pipeline pipeline = plan_pipeline(settings, nodes_of(settings, {8, 8}));
  EXPECT_EQ(pipeline.stages[0].update.num_mini_batch, 6);
  EXPECT_EQ(pipeline.stages[0].update.update_repeats, 8);
}

TEST(ObjectNavSettings, MachinesAreTheTutorialsNodesUnlessRanksHaveSamplersOfTheirOwn) {
  const Experiment by_machine = parse("pipeline.rollouts = 'whole'\n");
  const Experiment by_rank = parse("environment.samplers = 60\npipeline.rollouts = 'whole'\n");
  const RankCount ranks = {24, 3};  // the tutorial's, with a rank for each of eight GPUs
  const Nodes three = nodes_of(objectnav_of(by_machine).learning, ranks);
  EXPECT_EQ(three.count, 3);
  EXPECT_EQ(three.samplers, 60);
  EXPECT_EQ(three.smallest_share, 7);
  const Pipeline pipeline = plan_pipeline(objectnav_of(by_machine).learning, three);
  EXPECT_EQ(pipeline.stages[0].update.num_mini_batch, 3);
  EXPECT_EQ(pipeline.stages[0].update.update_repeats, 4);
  EXPECT_NEAR(learning_rate_factor(pipeline.schedule, 150e6), std::sqrt(3.0) * 0.5, 1e-9);
  const auto shown = by_machine.own->settings_on(ranks);
  ASSERT_EQ(shown.size(), 3U);
  EXPECT_EQ(shown[0].value,
            "to step 30000000: rollouts of 128 steps, 60 of 180 samplers a mini-batch, 4 repeats");
  EXPECT_EQ(
      shown[1].value,
      "to step 300000000: rollouts of 128 steps, 180 of 180 samplers a mini-batch, 4 repeats");
  EXPECT_EQ(shown[2].value, "grows by 1.73");

  const Nodes all = nodes_of(objectnav_of(by_rank).learning, ranks);
  EXPECT_EQ(all.count, 24);
  EXPECT_EQ(all.smallest_share, 60);
  EXPECT_NEAR(
      learning_rate_factor(plan_pipeline(objectnav_of(by_rank).learning, all).schedule, 150e6),
      std::sqrt(24.0) * 0.5, 1e-9);
  const Experiment few = parse("environment.samplers_per_machine = 7\n");
  EXPECT_NO_THROW(few.own->check_ranks({21, 3}));
  EXPECT_THROW(few.own->check_ranks({24, 3}), UsageError);
}

TEST(ObjectNavSettings, WhatFollowsFromTheMachinesIsShownAndCanBeSetByHand) {
  const auto shown = parse("ppo.num_mini_batch = 4\n").own->settings_on({8, 8});
  ASSERT_EQ(shown.size(), 3U);
  EXPECT_EQ(shown[0].value,
            "to step 60000000: rollouts of 16 steps, 120 of 480 samplers a mini-batch, 4 repeats");
  EXPECT_EQ(shown[1].value,
            "to step 300000000: rollouts of 45 steps, 120 of 480 samplers a mini-batch, 4 repeats");
  EXPECT_EQ(shown[2].value, "grows by 1.68");
  EXPECT_EQ(parse("").own->settings_on({1, 1}).size(), 2U);
  const auto by_hand = parse("pipeline = {rollout_steps = [20, 30], learning_rate_factor = 1.5}\n")
                           .own->settings_on({8, 8});
  ASSERT_EQ(by_hand.size(), 3U);
  EXPECT_NE(by_hand[0].value.find(" 20 steps"), std::string::npos) << by_hand[0].value;
  EXPECT_NE(by_hand[1].value.find(" 30 steps"), std::string::npos) << by_hand[1].value;
  EXPECT_EQ(by_hand[2].value, "grows by 1.5");
  EXPECT_EQ(mistake_in("pipeline.rollout_steps = [20]\n"),
            ":2: pipeline.rollout_steps has 1 number, but the run has 2 stages");
  EXPECT_EQ(mistake_in("pipeline.rollouts = 'part'\n"),
            ":2: pipeline.rollouts is one of shared, whole, not 'part'");
}

TEST(ObjectNavSettings, StagesCanBeListedAndSayWhatIsOtherThanUsual) {
  const Experiment experiment = parse(
      "ppo = {num_steps = 32, num_mini_batch = 2, entropy_coef = 0.02, advance_every = 50}\n"
      "optimizer.learning_rate = 0.004\n"
      "[[stage]]\nsteps = 1000\n"
      "[[stage]]\nsteps = 3000\nnum_steps = 64\nnum_mini_batch = 5\nupdate_repeats = 1\n"
      "advance_every = 0\nclip_param = 0.3\nvalue_loss_coef = 0.7\nentropy_coef = "
      "0\nlast_learning_rate = 0.001\n"
      "[[stage]]\nsteps = 500\nlearning_rate = 0.002\n");
  const DdPpoSettings& learning = objectnav_of(experiment).learning;
  EXPECT_EQ(learning.pipeline.steps, 4500);
  const Pipeline planned = plan_pipeline(learning, nodes_of(learning, {8, 4}));
  ASSERT_EQ(planned.stages.size(), 3U);
  EXPECT_EQ(planned.stages[0].end, 1000);
  EXPECT_EQ(planned.stages[1].end, 4000);
  EXPECT_EQ(planned.stages[2].end, 4500);
  EXPECT_EQ(planned.longest_rollout(), 64);
  for (const std::size_t plain : {0U, 2U}) {
    EXPECT_EQ(planned.stages[plain].update.num_steps, 32);
    EXPECT_EQ(planned.stages[plain].update.num_mini_batch, 2);
    EXPECT_EQ(planned.stages[plain].update.update_repeats, 4);
    EXPECT_EQ(planned.stages[plain].loss, (LossWeights{0.1, 0.5, 0.02}));
  }
  EXPECT_EQ(planned.stages[1].update.num_mini_batch, 5);
  EXPECT_EQ(planned.stages[1].update.update_repeats, 1);
  EXPECT_EQ(planned.stages[1].loss, (LossWeights{0.3, 0.7, 0}));
  EXPECT_EQ(planned.stages[0].update.advance_every, 50);
  EXPECT_EQ(planned.stages[1].update.advance_every, 0);
  const auto rate_at = [&](double steps) {
    return 0.004 * learning_rate_factor(planned.schedule, steps);
  };
  EXPECT_NEAR(rate_at(0), 0.004, 1e-12);
  EXPECT_NEAR(rate_at(999), 0.004, 1e-12);
  EXPECT_NEAR(rate_at(2500), 0.0025, 1e-12);
  EXPECT_NEAR(rate_at(3999.9), 0.001, 1e-6);
  EXPECT_NEAR(rate_at(4000), 0.002, 1e-12);
  EXPECT_NEAR(rate_at(4500), 0.002, 1e-12);
  EXPECT_EQ(experiment.own->settings_on({8, 4}).size(), 3U);

  EXPECT_EQ(mistake_in("[[stage]]\nnum_steps = 3\n"), ":2: stage[0] needs a length: steps");
  EXPECT_EQ(mistake_in("pipeline.steps = 9\n[[stage]]\nsteps = 3\n"),
            ":2: pipeline does not go together with [[stage]], which lists the stages");
  EXPECT_NE(mistake_in("[[stage]]\nsteps = 3\nnum_mini_batch = 61\n")
                .find("61 mini-batches cannot be made of a rank's 60 samplers "
                      "(stage[0].num_mini_batch)"),
            std::string::npos);
}

TEST(ObjectNavSettings, AThreadIsAskedForEachTenMillionMultiplyAddsOfAMiniBatch) {
  const auto whole = parse("").own->multiply_adds_per_batch({1, 1});
  // The three gates of the GRU are most of it.
  const std::int64_t gates = std::int64_t{60} * 128 * 3 * 128 * (64 + 128);
  EXPECT_GT(whole, gates);
  EXPECT_LT(whole, gates * 11 / 10);
  EXPECT_EQ(parse("ppo.num_mini_batch = 4\n").own->multiply_adds_per_batch({1, 1}), whole / 4);
  // Four machines with two ranks each share rollouts: half of the samplers, half of the steps.
  EXPECT_EQ(parse("").own->multiply_adds_per_batch({8, 4}), whole / 4);
  const std::string whole_rollouts = "pipeline.rollouts = 'whole'\n";
  EXPECT_EQ(parse(whole_rollouts).own->multiply_adds_per_batch({6, 3}), whole / 2);
  EXPECT_EQ(
      parse("environment.samplers = 60\n" + whole_rollouts).own->multiply_adds_per_batch({6, 3}),
      whole);
}

TEST(ObjectNavSettings, WhatOtherWorkloadsHaveIsRefusedWithTheReason) {
  EXPECT_EQ(mistake_in("[data]\nsource = 'digits'\n"),
            ":2: data does not go together with workload = \"objectnav\", whose experience comes "
            "from [environment]");
  EXPECT_EQ(mistake_in("train.epochs = 3\n"),
            ":2: train does not go together with workload = \"objectnav\": [ppo] says how it "
            "learns and [pipeline] how long");
  EXPECT_EQ(mistake_in("[[stage]]\nsteps = 3\nepochs = 2\n"), ":4: unknown key 'stage[0].epochs'");
  EXPECT_EQ(mistake_in("schedule.kind = 'cosine'\n"),
            ":2: schedule does not go together with workload = \"objectnav\", whose learning rate "
            "follows [pipeline] or [[stage]]");
  EXPECT_EQ(mistake_in("optimizer.scale_learning_rate = 'sqrt'\n"),
            ":2: optimizer.scale_learning_rate does not go together with workload = \"objectnav\": "
            "[pipeline] has the learning rate grow with the square root of the batches");
  EXPECT_EQ(mistake_in("checkpoint.every_epochs = 1\n"),
            ":2: checkpoint.every_epochs does not go together with workload = \"objectnav\", which "
            "has no epochs");
  EXPECT_EQ(mistake_in("model.layers = ['relu']\n"),
            ":2: model.layers is not for workload = \"objectnav\", whose network has "
            "model.embedding and model.hidden");
  for (const char* table : {"environment", "ppo", "pipeline", "validation"}) {
    try {
      experiment_of(
          "workload = 'classifier'\ndata.source = 'digits'\n[" + std::string(table) + "]\n",
          "objectnav_settings_test.toml");
      ADD_FAILURE() << table << " was taken";
    } catch (const UsageError& mistake) {
      EXPECT_NE(line_and_fault(mistake).find(":3: " + std::string(table) +
                                             " is only for workload = \"objectnav\""),
                std::string::npos)
          << mistake.what();
    }
  }
}

TEST(ObjectNavSettings, OnlyPicturesHaveAnEncoder) {
  EXPECT_EQ(objectnav_of(parse("")).environment.senses, Senses::cells);
  EXPECT_EQ(objectnav_of(parse("")).policy.memory, PolicyMemory::gru);
  EXPECT_EQ(objectnav_of(parse("model.memory = 'none'\n")).policy.memory, PolicyMemory::none);
  const Experiment pictures = parse("environment.observation = 'rgbd'\n");
  EXPECT_EQ(objectnav_of(pictures).environment.senses, Senses::rgbd);
  EXPECT_EQ(objectnav_of(pictures).policy.encoder, "nature_half");
  EXPECT_EQ(objectnav_of(pictures).policy.memory, PolicyMemory::gru);
  EXPECT_EQ(objectnav_of(pictures).policy.precision, Precision::float32);
  EXPECT_EQ(objectnav_of(parse("ppo.precision = 'bfloat16'\n")).policy.precision,
            Precision::bfloat16);
  EXPECT_EQ(pictures.own->multiply_adds_per_batch({1, 1}), 0) << "worth one thread";
  EXPECT_TRUE(
      objectnav_of(parse("environment.observation = 'rgbd'\nenvironment.marks_goal = true\n"))
          .environment.marks_goal);
  EXPECT_EQ(mistake_in("environment.marks_goal = true\n"),
            ":2: environment.marks_goal is for environment.observation = \"rgbd\"");
  EXPECT_EQ(mistake_in("model.encoder = 'impala'\n"),
            ":2: model.encoder is for environment.observation = \"rgbd\"");
  EXPECT_EQ(mistake_in("environment.observation = 'rgbd'\nmodel.encoder_layers = ['conv 8 80']\n"),
            ":3: model.encoder_layers: the observation camera: layer 'conv 8 80' is too large for "
            "images of 64 x 64");
  EXPECT_EQ(mistake_in("environment.observation = 'rgb'\n"),
            ":2: environment.observation is one of cells, rgbd, not 'rgb'");
}

TEST(ObjectNavSettings, MistakesNameTheKeyAndItsLine) {
  EXPECT_EQ(mistake_in("environment.action_noise = 1.5\n"),
            ":2: environment.action_noise must be from 0 to 1, not 1.5");
  EXPECT_EQ(mistake_in("environment.of_a_class = 5\n"),
            ":2: environment.of_a_class must be from 1 to 4, not 5");
  EXPECT_EQ(mistake_in("environment.samplers = 0\n"),
            ":2: environment.samplers must be from 1 to 1000000, not 0");
  EXPECT_EQ(mistake_in("environment.sampler = 8\n"), ":2: unknown key 'environment.sampler'");
  EXPECT_EQ(mistake_in("model.hidden = [50]\n"),
            ":2: model.hidden must be a whole number, not a list");
  EXPECT_EQ(mistake_in("environment.least_side = 15\nenvironment.most_side = 14\n"),
            ":2: environment.least_side is 15, above environment.most_side, which is 14");
  EXPECT_EQ(mistake_in("environment.most_rooms = 1\n"),
            ":2: environment.least_rooms is 2, above environment.most_rooms, which is 1");
  EXPECT_EQ(mistake_in("ppo.num_mini_batch = 61\n"),
            ":2: ppo.num_mini_batch is 61, more than environment.samplers_per_machine, 60");
  EXPECT_EQ(mistake_in("environment.samplers = 8\nppo.num_mini_batch = 9\n"),
            ":3: ppo.num_mini_batch is 9, more than environment.samplers, 8");
  EXPECT_EQ(mistake_in("environment.samplers_per_machine = 0\n"),
            ":2: environment.samplers_per_machine must be from 1 to 1000000, not 0");
  EXPECT_EQ(mistake_in("environment.samplers = 8\nenvironment.samplers_per_machine = 8\n"),
            ":3: environment.samplers_per_machine does not go together with environment.samplers, "
            "which is each rank's");
  EXPECT_EQ(mistake_in("ppo.preemption_share = 1.5\n"),
            ":2: ppo.preemption_share must be from 1e-06 to 1, not 1.5");
  EXPECT_EQ(mistake_in("pipeline.steps = 1000\npipeline.small_batch_steps = 2000\n"),
            ":3: pipeline.small_batch_steps must be from 0 to 1000, not 2000");
  EXPECT_EQ(mistake_in("[pipeline]\nsteps = 1000\nsmall_batch_steps = 1000\n"),
            ":2: pipeline.steps is 1000, but the first stage with its 2 % more takes 1020 and the "
            "transition to batches of 1 node 2");
}
