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

/// Does something in the backward pass, before the gradients of what goes in are there.
struct OnTheWayBack : torch::autograd::Function<OnTheWayBack> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& values,
                            const std::function<void()>* action) {
    context->saved_data["action"] = reinterpret_cast<std::int64_t>(action);
    return values * 1;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    (*reinterpret_cast<const std::function<void()>*>(context->saved_data["action"].toInt()))();
    return {gradients[0], {}};
  }
};

constexpr std::int64_t kLarge = (3 << 20) / 4;  // numbers

/// Its last factor's gradient, a large one, is there before `between` is called, and the others'
/// are not.
at::Tensor loss_of(const at::Tensor& first, const at::Tensor& large, double factor,
                   const std::function<void()>& before, const std::function<void()>& between) {
  const at::Tensor inner = OnTheWayBack::apply((first * factor).sum(), &between);
  return OnTheWayBack::apply((large * factor).sum() + inner, &before);
}

}  // namespace

TEST(DataParallel, EveryRankBeginsWithTheParametersOfRank0) {
  on_every_rank([](const Group& group) {
    at::Tensor weight = parameter(10.0 + group.rank);
    const DataParallel parallel(group, {weight});
    EXPECT_TRUE(weight.detach().equal(at::full({4}, 10.0)));
  });
}

class EveryAllReduce : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(DataParallel, EveryAllReduce,
                         testing::Values(Way::library, Way::automatic, Way::ring, Way::pairwise,
                                         Way::halving_doubling, Way::doubling));

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

TEST(DataParallel, GradientsAreExchangedWhereTheyLie) {
  on_every_rank([](const Group& group) {
    at::Tensor first = parameter(1);
    at::Tensor second = parameter(2);
    DataParallel parallel(group, {first, second});
    parallel.settle([&] { return (first + second).sum(); });
    EXPECT_TRUE(first.grad().is_alias_of(second.grad())) << "they are copied into a bucket";
  });
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

TEST(DataParallel, ASettlingStepBeginsWithoutFormerGradients) {
  on_every_rank([](const Group& group) {
    at::Tensor weight = parameter(1);
    DataParallel parallel(group, {weight});
    parallel.settle([&] { return weight.sum(); });
    parallel.settle([&] { return (weight * 3).sum(); });
    EXPECT_TRUE(weight.grad().allclose(at::full({4}, 3.0))) << weight.grad();
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
    if (GetParam() != Way::library) {
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

TEST(DataParallel, TheBackwardPassGoesOnWhileLargeGradientsAreExchanged) {
  on_every_rank(2, Machines::one_a_rank, [&](const Meeting& meeting) {
    constexpr std::chrono::seconds timeout(10);
    Group group = make_group(meeting, Backend::gloo, timeout);
    group.gradient_sum = std::make_shared<GradientSum>(meeting, Way::automatic, timeout);
    at::Tensor first = parameter(1);
    at::Tensor large = at::full({kLarge}, 2.0).requires_grad_(true);
    DataParallel parallel(group, {first, large});
    const std::function<void()> nothing = [] {};
    parallel.settle([&] { return loss_of(first, large, 1, nothing, nothing); });
    parallel.begin_step();
    // Rank 1 begins when rank 0 has left the large gradients behind it, and has no answer yet.
    const std::function<void()> before = [&] {
      if (group.rank == 1) meeting.store->wait({"rank 0 went on"}, timeout / 2);
    };
    const std::function<void()> between = [&] {
      if (group.rank == 0) meeting.store->set("rank 0 went on", std::vector<std::uint8_t>{1});
    };
    parallel.backward(loss_of(first, large, group.rank + 1, before, between), AcrossRanks::yes);
    EXPECT_TRUE(first.grad().equal(at::full({4}, 1.5)));
    EXPECT_TRUE(large.grad().equal(at::full({kLarge}, 1.5)));
  });
}

TEST(DataParallel, AFailureDoesNotWaitForGradientsThatAreUnderWay) {
  on_every_rank(2, Machines::one_a_rank, [&](const Meeting& meeting) {
    constexpr std::chrono::seconds timeout(60);
    Group group = make_group(meeting, Backend::gloo, timeout);
    group.gradient_sum = std::make_shared<GradientSum>(meeting, Way::automatic, timeout);
    at::Tensor first = parameter(1);
    at::Tensor large = at::full({kLarge}, 2.0).requires_grad_(true);
    auto parallel = std::make_unique<DataParallel>(group, std::vector{first, large});
    const std::function<void()> nothing = [] {};
    const std::function<void()> fail = [] { throw std::runtime_error("out of paper"); };
    parallel->settle([&] { return loss_of(first, large, 1, nothing, nothing); });
    parallel->begin_step();
    if (group.rank == 1) {  // takes no part in the step
      meeting.store->wait({"rank 0 is through"}, timeout / 3);
      return;
    }
    EXPECT_THROW(parallel->backward(loss_of(first, large, 1, nothing, fail), AcrossRanks::yes),
                 std::runtime_error);
    parallel.reset();
    meeting.store->set("rank 0 is through", std::vector<std::uint8_t>{1});
  });
}

TEST_P(EveryAllReduce, LargeAndSmallGradientsAreAveragedInTurn) {
  const auto body = [](const Group& group) {
    std::vector<at::Tensor> parameters;
    for (int i = 0; i < 6; ++i) {
      parameters.push_back(at::full({i % 2 == 0 ? 5 : kLarge}, 1.0).requires_grad_(true));
    }
    DataParallel parallel(group, parameters);
    const auto loss = [&](int step) {
      at::Tensor sum = at::zeros({});
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        sum = sum + parameters[i].sum() * (static_cast<double>(i) + step * (group.rank + 1));
      }
      return sum;
    };
    parallel.settle([&] { return loss(1); });
    for (int step = 1; step <= 3; ++step) {
      parallel.begin_step();
      parallel.backward(loss(step), AcrossRanks::yes);
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor& gradient = parameters[i].grad();
        // The ranks' mean of rank + 1 is 2.
        const double expected = static_cast<double>(i) + 2.0 * step;
        EXPECT_TRUE(gradient.allclose(at::full_like(gradient, expected))) << i;
      }
    }
  };
  on_every_rank(body, GetParam());
}

TEST_P(EveryAllReduce, APeerThatIsGoneIsToldAsOneForLargeGradientsToo) {
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    constexpr std::chrono::seconds timeout(2);
    Group group = make_group(meeting, Backend::gloo, timeout);
    if (GetParam() != Way::library) {
      group.gradient_sum = std::make_shared<GradientSum>(meeting, GetParam(), timeout);
    }
    at::Tensor weight = at::full({kLarge}, 2.0).requires_grad_(true);
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
  parallel.settle([&]() -> at::Tensor {
    ADD_FAILURE() << "it has no buckets to settle";
    return weight.sum();
  });
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
  on_every_rank(body, Way::automatic);
}

TEST(GradientSum, IsForCpusHoweverManyRanksThereAre) {
  const at::Device cpu = at::kCPU;
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_TRUE(sums_by_links(Way::automatic, cpu, 2));
  EXPECT_TRUE(sums_by_links(Way::automatic, cpu, 1000));
  EXPECT_FALSE(sums_by_links(Way::automatic, cpu, 1));
  EXPECT_FALSE(sums_by_links(Way::automatic, gpu, 2));
  EXPECT_FALSE(sums_by_links(Way::library, cpu, 2));
  EXPECT_TRUE(sums_by_links(Way::ring, cpu, 65));
  EXPECT_THROW(sums_by_links(Way::ring, gpu, 2), UsageError);
}

TEST(GradientSum, TakesFewRoundsForFewBytes) {
  EXPECT_EQ(algorithm_for(Way::automatic, 4), Way::doubling);
  EXPECT_EQ(algorithm_for(Way::automatic, 200'000), Way::halving_doubling);
  EXPECT_EQ(algorithm_for(Way::automatic, 100 << 20), Way::ring);
  EXPECT_EQ(algorithm_for(Way::ring, 4), Way::ring);
}
