// SPDX-License-Identifier: MIT
// Schedules against the numbers that PyTorch's and AllenAct's give; expected values are arithmetic.
#include "trainer/settings/train_settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "trainer/supervised/supervised_settings.h"

using namespace dtool::trainer;

TEST(Schedule, ConstantStaysAtOne) {
  for (const double time : {0.0, 3.5, 1e9}) EXPECT_EQ(learning_rate_factor({}, time), 1);
}

TEST(Schedule, StepMultipliesOnceMoreAfterEachStretch) {
  const ScheduleSettings schedule{.kind = ScheduleKind::step, .every = 2, .gamma = 0.5};
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 1.99), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 2), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 7), 0.125);
}

TEST(Schedule, MultiStepIsPyTorchsMultiStepLR) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::multi_step, .milestones = {3, 6}, .gamma = 0.1};
  const double expected[] = {1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01};
  for (int epoch = 0; epoch < 8; ++epoch) {
    EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, epoch), expected[epoch]);
    EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, epoch + 0.9), expected[epoch]);
  }
}

TEST(Schedule, ManyFractionsOfAnEpochAddUpToIt) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::multi_step, .milestones = {3}, .gamma = 0.1};
  double time = 0;
  for (int i = 0; i < 30; ++i) time += 0.1;  // 2.9999999999999996
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, time), 0.1);
}

TEST(Schedule, TheStepsOfEightyEpochsOfImagenetAddUpToThem) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::multi_step, .milestones = {80}, .gamma = 0.1};
  double time = 0;
  for (int i = 0; i < 80 * 5004; ++i) time += 1.0 / 5004;
  EXPECT_LT(time, 80 - 1e-10) << "rounding has no effect here";
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, time), 0.1);
}

TEST(Schedule, LinearFallsEvenlyAndStays) {
  const ScheduleSettings schedule{.kind = ScheduleKind::linear, .length = 10, .end = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 5), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 10), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 99), 0.2);
}

TEST(Schedule, MultiLinearIsAllenActsOfTheTwoStagePipeline) {
  // On four nodes: small batches for 30 million steps, a transition, then sqrt(4) times the rate.
  const double small = 30e6 * 1.02;
  const double transition = std::floor(2.0 / 3 * 4 * 1e6);
  const double whole = 300e6;
  const double break1 = 1 - small / whole;
  const double break2 = 2 * (1 - (small + transition) / whole);
  const ScheduleSettings schedule{.kind = ScheduleKind::multi_linear,
                                  .pieces = {{small, 1, break1},
                                             {transition, break1, break2},
                                             {whole - small - transition, break2, 0}}};
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, small / 2), (1 + break1) / 2);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, small), break1);
  EXPECT_NEAR(learning_rate_factor(schedule, small + transition), break2, 1e-12);
  EXPECT_NEAR(learning_rate_factor(schedule, whole), 0, 1e-12);
  EXPECT_NEAR(learning_rate_factor(schedule, 2 * whole), 0, 1e-12);
}

TEST(Schedule, APieceEndsWhereTheNextOneBegins) {
  const ScheduleSettings jump{.kind = ScheduleKind::multi_linear,
                              .pieces = {{10, 1, 0.5}, {10, 0.2, 0}}};
  EXPECT_DOUBLE_EQ(learning_rate_factor(jump, 10), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_factor(jump, 15), 0.1);
  EXPECT_EQ(learning_rate_factor({.kind = ScheduleKind::multi_linear}, 3), 1) << "without a piece";
}

TEST(Schedule, CosineAnnealsAfterTheWarmUp) {
  const ScheduleSettings schedule{
      .kind = ScheduleKind::cosine, .length = 12, .end = 0.1, .warm_up = 2, .warm_up_start = 0.25};
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 1), 0.625);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 2), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 7), 0.1 + 0.9 * 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 4.5),
                   0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi / 4)));
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule, 12), 0.1);
}

TEST(StagePlan, CountsStepsOfAnEpochWithTheirLastPart) {
  const StagePlan plan({{.epochs = 1, .batch_size = 10, .accumulate = 3, .repeats = 2}}, 95);
  EXPECT_EQ(plan.steps_of_epoch(plan.stage({})), 8);  // 10 batches, 4 groups, each twice
}

TEST(StagePlan, AStageEndsAfterItsEpochsOrItsSteps) {
  const StagePlan plan({{.epochs = 0, .steps = 5, .batch_size = 1, .accumulate = 1, .repeats = 1},
                        {.epochs = 2, .batch_size = 1, .accumulate = 1, .repeats = 1}},
                       100);
  dtool::trainer::Progress progress;
  progress.stage_steps = 4;
  EXPECT_FALSE(plan.stage_is_over(progress));
  progress.stage_steps = 5;
  EXPECT_TRUE(plan.stage_is_over(progress));
  EXPECT_FALSE(plan.is_over(progress));
  progress.stage = 1;
  EXPECT_FALSE(plan.stage_is_over(progress));
  progress.stage_epochs = 2;
  EXPECT_TRUE(plan.is_over(progress));
  EXPECT_EQ(plan.epochs(), 0);  // the first stage has none
}

TEST(StagePlan, TellsTheShareThatIsDone) {
  const StagePlan plan({{.epochs = 4, .batch_size = 10, .accumulate = 1, .repeats = 1}}, 100);
  dtool::trainer::Progress progress;
  progress.world_size = 2;
  progress.epochs = 1;
  progress.samples = 100;  // of 200 over both ranks
  EXPECT_DOUBLE_EQ(plan.epochs_done(progress), 1.5);
  EXPECT_DOUBLE_EQ(plan.share_done(progress), 0.375);
}
