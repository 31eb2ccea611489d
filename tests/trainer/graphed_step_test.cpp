// SPDX-License-Identifier: MIT
// Everything but the GPU's own recording: a recorder that does the recorded work again stands in
// for it, which reads the same tensors as a graph would.
#include "trainer/training/graphed_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "trainer/ranks/gpu.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

const std::string kOff = "train.cuda_graph = \"off\"";

/// Two tensors of so many rows.
std::vector<at::Tensor> inputs_of(double value, std::int64_t size) {
  return {at::full({size, 3}, value), at::full({size, 1}, -value)};
}

CudaGraphSetting wanted(CudaGraph graph) {
  return {graph, "train.cuda_graph"};
}

struct CountedStep {
  int worked = 0;
  int recorded = 0;
  int played = 0;
  double inputs = 0;  ///< the sum of the last step's
  double targets = 0;

  GraphedStep step{at::kCPU, kOff,
                   [this](const std::vector<at::Tensor>& given) {
                     ++worked;
                     inputs = given[0].sum().item<double>();
                     targets = given[1].sum().item<double>();
                   },
                   [this](const std::function<void()>& work) {
                     ++recorded;
                     return [this, work] {
                       ++played;
                       work();
                     };
                   }};
};

}  // namespace

TEST(GraphedStep, RecordsAfterTheWarmUpAndPlaysWithNewValues) {
  CountedStep counted;
  for (int i = 1; i <= GraphedStep::kWarmUp + 5; ++i) {
    counted.step.run(inputs_of(11 * i, 2));
    EXPECT_EQ(counted.worked, i);
    EXPECT_EQ(counted.inputs, 2 * 3 * 11.0 * i);
    EXPECT_EQ(counted.targets, -2 * 11.0 * i);
  }
  EXPECT_EQ(counted.recorded, 1);
  EXPECT_EQ(counted.played, 5);
}

TEST(GraphedStep, DoesOtherSizesOperationByOperation) {
  CountedStep counted;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i < GraphedStep::kWarmUp + 1; ++i) counted.step.run(inputs_of(1, 4));
    const int played = counted.played;
    counted.step.run(inputs_of(1, 3));
    EXPECT_EQ(counted.inputs, 9);
    EXPECT_EQ(counted.played, played);
  }
  EXPECT_EQ(counted.recorded, 1);
  EXPECT_EQ(counted.played, 1 + 2 * (GraphedStep::kWarmUp + 1));
}

TEST(GraphedStep, RecordsAnewForAStageOfOtherBatches) {
  CountedStep counted;
  for (const int size : {4, 8}) {
    for (int i = 0; i < GraphedStep::kWarmUp + 3; ++i) counted.step.run(inputs_of(1, size));
    EXPECT_EQ(counted.inputs, 3 * size);
  }
  EXPECT_EQ(counted.recorded, 2);
  EXPECT_EQ(counted.played, 6);
}

TEST(GraphedStep, ForgetsARecordingOfOtherWork) {
  CountedStep counted;
  for (int i = 0; i < GraphedStep::kWarmUp + 3; ++i) counted.step.run(inputs_of(1, 4));
  EXPECT_EQ(counted.played, 3);
  counted.step.forget();
  for (int i = 0; i < GraphedStep::kWarmUp; ++i) counted.step.run(inputs_of(1, 4));
  EXPECT_EQ(counted.played, 3);
  counted.step.run(inputs_of(1, 4));
  EXPECT_EQ(counted.recorded, 2);
  EXPECT_EQ(counted.played, 4);
}

TEST(GraphedStep, ARecordingHasInputsOfItsOwn) {
  CountedStep counted;
  const auto recorded = inputs_of(1, 2);
  for (int i = 0; i <= GraphedStep::kWarmUp; ++i) counted.step.run(recorded);
  counted.step.run(inputs_of(5, 2));
  EXPECT_EQ(counted.inputs, 30);
  EXPECT_TRUE(recorded[0].equal(at::ones({2, 3}))) << "its caller's tensors stay as they are";
}

TEST(GraphedStep, ALostPeerIsNoFaultOfTheRecording) {
  bool has_given_up = false;
  GraphedStep step(
      at::kCPU, kOff, [](const std::vector<at::Tensor>&) {},
      [](const std::function<void()>&) -> std::function<void()> {
        throw CollectiveFailed("rank 1 is gone");
      },
      [&](const std::string&) { has_given_up = true; });
  for (int i = 0; i < GraphedStep::kWarmUp; ++i) step.run(inputs_of(1, 1));
  EXPECT_THROW(step.run(inputs_of(1, 1)), CollectiveFailed);
  EXPECT_FALSE(has_given_up);
}

TEST(GraphedStep, IsThereWhereItIsWantedAndTheDeviceHasIt) {
  const at::Device gpu(at::kCUDA, 0);
  const auto is_there = [](CudaGraph graph, at::Device device, Replay replay) {
    return graphed_step(wanted(graph), device, replay, {}, {}).has_value();
  };
  EXPECT_TRUE(is_there(CudaGraph::on, gpu, Replay::right));
  EXPECT_TRUE(is_there(CudaGraph::automatic, gpu, Replay::right));
  EXPECT_FALSE(is_there(CudaGraph::automatic, gpu, Replay::stale));
  EXPECT_FALSE(is_there(CudaGraph::automatic, at::kCPU, Replay::right));
  EXPECT_FALSE(is_there(CudaGraph::off, gpu, Replay::right));
}

TEST(GraphedStep, SaysWhatToDoWhereAStepCannotBeRecorded) {
  GraphedStep step(
      at::kCPU, kOff, [](const std::vector<at::Tensor>&) {},
      [](const std::function<void()>&) -> std::function<void()> {
        TORCH_CHECK(false, "operation not permitted");
      });
  for (int i = 0; i < GraphedStep::kWarmUp; ++i) step.run(inputs_of(1, 1));
  try {
    step.run(inputs_of(1, 1));
    FAIL();
  } catch (const std::runtime_error& problem) {
    EXPECT_STREQ(problem.what(),
                 "the step cannot be recorded as a CUDA graph (train.cuda_graph = \"off\" does "
                 "without): operation not permitted");
  }
}

// A step without inputs needs no GPU until it is recorded, which a build for CPUs cannot.
TEST(GraphedStep, AFailureEndsTheRunWhereARecordingIsWantedAndIsANoteElsewhere) {
  if (gpu::count() > 0) GTEST_SKIP() << "needs a machine without GPUs";
  const auto run = [](CudaGraph graph, std::string& note) {
    auto step = graphed_step(
        wanted(graph), at::Device(at::kCUDA, 0), Replay::right,
        [](const std::vector<at::Tensor>&) {}, [&](const std::string& reason) { note = reason; });
    for (int i = 0; i <= GraphedStep::kWarmUp; ++i) step.value().run({});
  };
  std::string note;
  EXPECT_THROW(run(CudaGraph::on, note), std::runtime_error);
  EXPECT_EQ(note, "");
  run(CudaGraph::automatic, note);
  EXPECT_TRUE(note.starts_with("the step cannot be recorded as a CUDA graph (train.cuda_graph = "))
      << note;
}

TEST(GraphedStep, GoesOnWithoutARecordingWhereThatIsAllowed) {
  int worked = 0;
  int tried = 0;
  std::vector<std::string> reasons;
  GraphedStep step(
      at::kCPU, kOff, [&](const std::vector<at::Tensor>&) { ++worked; },
      [&](const std::function<void()>& work) -> std::function<void()> {
        ++tried;
        work();  // part of a step, thrown away
        --worked;
        throw std::runtime_error("operation not permitted");
      },
      [&](const std::string& reason) { reasons.push_back(reason); });
  for (int i = 1; i <= 3 * GraphedStep::kWarmUp; ++i) {
    step.run(inputs_of(1, i <= 2 * GraphedStep::kWarmUp ? 1 : 2));
    EXPECT_EQ(worked, i);
  }
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(reasons, (std::vector<std::string>{
                         "the step cannot be recorded as a CUDA graph (train.cuda_graph = \"off\" "
                         "does without): operation not permitted"}));
}

TEST(PlaysBack, IsForUpdatesThatReadTheLearningRateAnew) {
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_FALSE(plays_back(wanted(CudaGraph::automatic), gpu, Replay::stale));
  EXPECT_FALSE(plays_back(wanted(CudaGraph::off), gpu, Replay::stale));
  EXPECT_THROW(plays_back(wanted(CudaGraph::on), gpu, Replay::stale), UsageError);
  EXPECT_TRUE(plays_back(wanted(CudaGraph::on), gpu, Replay::right));
  // Without the fused update the numbers are the CPU's.
  EXPECT_EQ(Optimizer({at::zeros({3})}, {}).replay(), Replay::stale);
}

TEST(PlaysBack, IsForGpus) {
  const at::Device cpu = at::kCPU;
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_FALSE(plays_back(wanted(CudaGraph::automatic), cpu));
  EXPECT_TRUE(plays_back(wanted(CudaGraph::automatic), gpu));
  EXPECT_FALSE(plays_back(wanted(CudaGraph::off), gpu));
  EXPECT_THROW(plays_back(wanted(CudaGraph::on), cpu), UsageError);
}
