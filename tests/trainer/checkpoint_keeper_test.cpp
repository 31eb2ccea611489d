// SPDX-License-Identifier: MIT
// What a request by a signal waits for.
#include "trainer/training/checkpoint_keeper.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "tests/trainer/own_folder.h"
#include "trainer/launch/requests.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/snapshot.h"

using namespace dtool::trainer;

namespace {

/// One parameter and no forward.
struct OneTensor : Weights {
  std::vector<NamedTensor> parameters() const override { return {{"weight", weight}}; }
  std::vector<NamedTensor> buffers() const override { return {}; }
  at::Tensor weight;
};

class Keeper : public OwnFolder {
 protected:
  Keeper() {
    at::set_num_threads(1);  // others would be missing in a forked process
    model_.weight = at::zeros({4'000'000}).requires_grad_(true);  // so that a file takes a while
    options_.output_dir = folder_;
    std::filesystem::create_directories(checkpoints_of(options_));
    optimizer_.emplace(tensors_of(model_.parameters()), OptimizerSettings{});
    log_.emplace(folder_, TensorBoard::off, RunStart{});
  }

  /// Keeps the state of step 1, and then the model is no number.
  void spoil() {
    keeper_.emplace(group_, options_, settings_, std::chrono::seconds(60), model_, *optimizer_,
                    progress_);
    progress_.steps = 1;
    keeper_->keep();
    model_.weight.detach().fill_(std::numeric_limits<float>::quiet_NaN());
    progress_.steps = 2;
  }
  bool is_kept(std::int64_t step) const {
    return std::filesystem::exists(checkpoint_file(checkpoints_of(options_), step));
  }

  const Group group_;
  CommandLine options_;
  const CheckpointSettings settings_{0, 1, 3, false};
  OneTensor model_;
  Progress progress_;
  std::optional<Optimizer> optimizer_;
  std::optional<CheckpointKeeper> keeper_;
  std::optional<ProgressLog> log_;
};

}  // namespace

TEST_F(Keeper, ARefusedRequestForTheEndWaitsForWhatWasKeptBefore) {
  spoil();
  EXPECT_FALSE(keeper_->is_sound());
  const auto ends = ends_kept();
  keeper_->refuse(SIGTERM, *log_);
  EXPECT_TRUE(is_kept(1));
  EXPECT_FALSE(is_kept(2));
  EXPECT_EQ(ends_kept(), ends + 1);
}

TEST_F(Keeper, ARefusedProcessEndsByItsSignalWhenTheFileIsThere) {
  EXPECT_EXIT(
      {
        await_requests();
        spoil();
        raise(SIGTERM);
        keeper_->refuse(take_request(), *log_);
      },
      testing::KilledBySignal(SIGTERM), "");
  EXPECT_TRUE(is_kept(1));
}

TEST_F(Keeper, AProcessEndsByItsSignalWhenItsCheckpointAndTheBestModelAreThere) {
  const CheckpointSettings with_best{0, 1, 3, true};
  EXPECT_EXIT(
      {
        await_requests();
        keeper_.emplace(group_, options_, with_best, std::chrono::seconds(60), model_, *optimizer_,
                        progress_);
        progress_.steps = 1;
        keeper_->keep();
        keeper_->take_score(1, Better::higher);
        raise(SIGTERM);
        keeper_->answer(take_request(), *log_);
        _exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
  EXPECT_TRUE(is_kept(1));
  EXPECT_TRUE(std::filesystem::exists(best_checkpoint_file(checkpoints_of(options_))));
}

TEST_F(Keeper, ARequestForACheckpointEndsNothing) {
  keeper_.emplace(group_, options_, settings_, std::chrono::seconds(60), model_, *optimizer_,
                  progress_);
  const auto ends = ends_kept();
  progress_.steps = 1;
  keeper_->keep();
  testing::internal::CaptureStdout();
  keeper_->answer(SIGUSR1, *log_);
  keeper_->finish(*log_);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "checkpoint written: step 1, since SIGUSR1 came\n");
  EXPECT_EQ(ends_kept(), ends);
}

TEST_F(Keeper, ARequestForTheEndIsNotAnsweredByAnEarlierState) {
  keeper_.emplace(group_, options_, settings_, std::chrono::seconds(60), model_, *optimizer_,
                  progress_);
  for (progress_.steps = 1; progress_.steps < 3; ++progress_.steps) keeper_->keep();
  testing::internal::CaptureStdout();
  keeper_->answer(SIGTERM, *log_);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "checkpoint written: step 2, since SIGTERM came\n");
}

TEST_F(Keeper, ARequestForACheckpointDoesNotEndAProcessWhoseEndIsAskedForMeanwhile) {
  const auto answered = [&](bool is_sound) {
    await_requests();
    keeper_.emplace(group_, options_, settings_, std::chrono::seconds(60), model_, *optimizer_,
                    progress_);
    progress_.steps = 1;
    keeper_->keep();
    raise(SIGTERM);
    if (is_sound) {
      keeper_->answer(SIGUSR1, *log_);
    } else {
      keeper_->refuse(SIGUSR1, *log_);
    }
    _exit(take_request() == SIGTERM ? 0 : 1);
  };
  for (const bool is_sound : {true, false}) {
    EXPECT_EXIT(answered(is_sound), testing::ExitedWithCode(0), "") << is_sound;
  }
}

TEST_F(Keeper, AnotherRankThan0CountsWithItAndWritesNothing) {
  Group second;
  second.rank = 1;
  const CheckpointSettings with_best{0, 1, 3, true};
  keeper_.emplace(second, options_, with_best, std::chrono::seconds(60), model_, *optimizer_,
                  progress_);
  progress_.steps = 1;
  keeper_->keep();
  keeper_->take_score(0.5, Better::higher);
  EXPECT_EQ(keeper_->kept_step(), 1);
  EXPECT_EQ(progress_.best_score, 0.5);
  keeper_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(checkpoints_of(options_)));
}

TEST_F(Keeper, AModelThatNoCheckpointCanHoldIsRefusedAtTheStart) {
  model_.weight = at::zeros({2}, at::kComplexFloat);
  EXPECT_THROW(keeper_.emplace(group_, options_, settings_, std::chrono::seconds(60), model_,
                               *optimizer_, progress_),
               UsageError);
}
