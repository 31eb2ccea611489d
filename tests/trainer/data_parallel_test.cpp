// SPDX-License-Identifier: MIT
// The expected values are arithmetic on rank and size.
#include "trainer/training/data_parallel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tests/trainer/ranks.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

at::Tensor parameter(double value) {
  return at::full({4}, value).requires_grad_(true);
}

/// Fails in the backward pass.
struct Spoilt : torch::autograd::Function<Spoilt> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& values) {
    return values * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("out of paper");
  }
};

}  // namespace

TEST(DataParallel, EveryRankBeginsWithTheParametersOfRank0) {
  on_every_rank([](const Group& group) {
    at::Tensor weight = parameter(10.0 + group.rank);
    const DataParallel parallel(group, {weight});
    EXPECT_TRUE(weight.detach().equal(at::full({4}, 10.0)));
  });
}

class EveryAllReduce : public testing::TestWithParam<AllReduce> {};

INSTANTIATE_TEST_SUITE_P(DataParallel, EveryAllReduce,
                         testing::Values(AllReduce::library, AllReduce::automatic, AllReduce::ring,
                                         AllReduce::pairwise, AllReduce::halving_doubling,
                                         AllReduce::doubling, AllReduce::tree));

TEST_P(EveryAllReduce, GradientsAreAveragedAndFormerOnesForgotten) {
  const auto body = [](const Group& group) {
    at::Tensor first = parameter(1);
    at::Tensor second = parameter(2);
    DataParallel parallel(group, {first, second});
    parallel.settle([&] { return (first * second).sum(); });
    for (int step = 1; step <= 3; ++step) {
      // d/dfirst = step (rank + 1), d/dsecond = 2 step (rank + 1); the ranks' mean of rank + 1
      // is 2.
      const double factor = step * (group.rank + 1);
      parallel.begin_step();
      parallel.backward((first * factor + second * (2 * factor)).sum(), AcrossRanks::yes);
      EXPECT_TRUE(first.grad().allclose(at::full({4}, 2.0 * step))) << first.grad();
      EXPECT_TRUE(second.grad().allclose(at::full({4}, 4.0 * step))) << second.grad();
    }
  };
  on_every_rank(body, GetParam());
}

TEST(DataParallel, GradientsOfAStepAddUpBeforeTheyAreExchanged) {
  on_every_rank([](const Group& group) {
    at::Tensor weight = parameter(1);
    DataParallel parallel(group, {weight});
    parallel.settle([&] { return weight.sum(); });
    for (int step = 1; step <= 2; ++step) {
      parallel.begin_step();
      parallel.backward((weight * step).sum(), AcrossRanks::no);
      EXPECT_TRUE(weight.grad().equal(at::full({4}, 1.0 * step)));  // its own
      // The ranks' mean of rank is 1.
      parallel.backward((weight * group.rank).sum(), AcrossRanks::yes);
      EXPECT_TRUE(weight.grad().allclose(at::full({4}, step + 1.0))) << weight.grad();
    }
  });
}

TEST_P(EveryAllReduce, ARanksOwnMistakeKeepsItsWords) {
  const auto body = [](const Group& group) {
    at::Tensor weight = parameter(1);
    DataParallel parallel(group, {weight});
    parallel.begin_step();
    try {
      parallel.backward(Spoilt::apply(weight).sum(), AcrossRanks::yes);
      ADD_FAILURE();
    } catch (const CollectiveFailed& problem) {
      ADD_FAILURE() << "told as a lost peer: " << problem.what();
    } catch (const std::exception& problem) {
      EXPECT_STREQ(problem.what(), "out of paper");
    }
  };
  on_every_rank(body, GetParam());
}

TEST_P(EveryAllReduce, APeerThatIsGoneIsToldAsOne) {
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    constexpr std::chrono::seconds timeout(2);
    Group group = make_group(meeting, Backend::gloo, timeout);
    if (GetParam() != AllReduce::library) {
      group.gradient_sum = std::make_shared<GradientSum>(meeting, GetParam(), timeout);
    }
    at::Tensor weight = parameter(1);
    DataParallel parallel(group, {weight});
    parallel.settle([&] { return weight.sum(); });
    parallel.begin_step();
    if (group.rank == 1) return;  // takes no part in the step
    EXPECT_THROW(parallel.backward(weight.sum(), AcrossRanks::yes), CollectiveFailed);
  });
}

TEST(DataParallel, OneRankNeedsNobody) {
  at::Tensor weight = parameter(1);
  DataParallel parallel(Group{}, {weight});
  for (int step = 1; step <= 2; ++step) {
    parallel.begin_step();
    parallel.backward((weight * 5).sum(), AcrossRanks::yes);
    EXPECT_TRUE(weight.grad().equal(at::full({4}, 5.0)));
  }
}

TEST(ProcessGroup, SumsAndTextsGoRound) {
  on_every_rank([](const Group& group) {
    const auto sums = sum_over_ranks(group, {1.0, static_cast<double>(group.rank)});
    EXPECT_EQ(sums, (std::vector<double>{3.0, 3.0}));
    const std::string text = group.rank == 0 ? std::string("a\0b", 3) : "not read";
    EXPECT_EQ(broadcast_text(group, text), std::string("a\0b", 3));
    EXPECT_EQ(broadcast_text(group, ""), "");
    const std::string large(40 << 20, 'x');  // goes in parts
    EXPECT_TRUE(broadcast_text(group, group.rank == 0 ? large + "y" : "") == large + "y");
  });
}

TEST(Rendezvous, ALoopbackAddressGivesWayWhereOthersComeFromOutside) {
  const Member here{0, 0, "red", "127.0.1.1"};
  EXPECT_EQ(reachable_address(here, {here}), "127.0.1.1");
  const Member outside{1, 1, "blue", "192.0.2.7"};
  EXPECT_EQ(reachable_address(outside, {here, outside}), "192.0.2.7");
}

TEST(DataParallel, GradientsThatAreNoFloatsAreAveragedByTheLibrary) {
  const auto body = [](const Group& group) {
    at::Tensor weight = at::full({4}, 1, at::kDouble).requires_grad_(true);
    DataParallel parallel(group, {weight});
    parallel.begin_step();
    parallel.backward((weight * (group.rank + 1)).sum(), AcrossRanks::yes);
    EXPECT_TRUE(weight.grad().allclose(at::full({4}, 2.0, at::kDouble))) << weight.grad();
  };
  on_every_rank(body, AllReduce::automatic);
}

TEST(GradientSum, IsForCpusHoweverManyRanksThereAre) {
  const at::Device cpu = at::kCPU;
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_TRUE(sums_by_links(AllReduce::automatic, cpu, 2));
  EXPECT_TRUE(sums_by_links(AllReduce::automatic, cpu, 1000));
  EXPECT_FALSE(sums_by_links(AllReduce::automatic, cpu, 1));
  EXPECT_FALSE(sums_by_links(AllReduce::automatic, gpu, 2));
  EXPECT_FALSE(sums_by_links(AllReduce::library, cpu, 2));
  EXPECT_TRUE(sums_by_links(AllReduce::ring, cpu, 65));
  EXPECT_THROW(sums_by_links(AllReduce::ring, gpu, 2), UsageError);
}

TEST(GradientSum, TakesFewRoundsForFewBytes) {
  EXPECT_EQ(algorithm_for(AllReduce::automatic, 4), Algorithm::doubling);
  EXPECT_EQ(algorithm_for(AllReduce::automatic, 200'000), Algorithm::halving_doubling);
  EXPECT_EQ(algorithm_for(AllReduce::automatic, 100 << 20), Algorithm::ring);
  EXPECT_EQ(algorithm_for(AllReduce::tree, 4), Algorithm::tree);
}
