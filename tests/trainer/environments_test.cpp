// SPDX-License-Identifier: MIT
// Everything that learns, with an environment that knows nothing of houses: a corridor, at one of
// whose ends is the reward.
#include "trainer/reinforcement/environments.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/trainer/own_folder.h"
#include "trainer/data/sampler.h"
#include "trainer/reinforcement/ddppo.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/rollout.h"
#include "trainer/reinforcement/validation.h"
#include "trainer/training/checkpoint_writer.h"

using namespace dtool::trainer;

namespace {

constexpr int kCells = 5;
constexpr double kLimit = 8;

const EnvironmentSpec kCorridorSpec = {
    {{"place", {1}, ObservedKind::codes, kCells},
     {"end with the reward, previous action", {2}, ObservedKind::codes, 3}},
    {{2}, {}, {}},
    {"found", "length"}};

/// The agent begins in the middle, and sees at which end the reward is. Action 0 is a step to the
/// left, 1 to the right.
class Corridor : public ThreadedEnvironments {
 public:
  Corridor(EpisodeSet set, std::uint64_t seed, std::int64_t first, int count, int threads = 0)
      : ThreadedEnvironments(threads),
        agents_(static_cast<std::size_t>(count)),
        seed_(seed * 2 + (set == EpisodeSet::validation ? 1 : 0)),
        first_(first) {
    for (std::size_t i = 0; i < agents_.size(); ++i) begin_episode(i);
  }

  ~Corridor() override { end_threads(); }

  const EnvironmentSpec& spec() const override { return kCorridorSpec; }
  int count() const override { return static_cast<int>(agents_.size()); }

  void observe(std::span<std::uint8_t> observations) const override {
    for (std::size_t i = 0; i < agents_.size(); ++i) show(i, observations);
  }

  void step(int begin, int end, const StepArrays& arrays) override {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      Agent& agent = agents_[i];
      const bool goes_right = arrays.actions[i] == 1;
      agent.place += goes_right ? 1 : -1;
      agent.previous = goes_right ? 2 : 1;
      agent.steps += 1;
      const bool is_at_an_end = agent.place == 0 || agent.place == kCells - 1;
      const bool found = is_at_an_end && (agent.place == 0) == (agent.rewarded_end == 0);
      arrays.rewards[i] = found ? 1 : 0;
      const bool is_cut_off = !is_at_an_end && agent.steps == kLimit;
      arrays.endings[i] = is_at_an_end ? Ending::terminated
                          : is_cut_off ? Ending::truncated
                                       : Ending::none;
      if (is_cut_off) show(i, arrays.last_observations);
      if (is_at_an_end || is_cut_off) {
        const double reward = found ? 1 : 0;
        if (agent.counted > 0) agent.sums += {1, agent.steps, reward, {reward, agent.steps}};
        --agent.counted;
        begin_episode(i);
      }
      show(i, arrays.observations);
    }
  }

  void advance() override {
    ++advances;
    for (std::size_t i = 0; i < agents_.size(); ++i) begin_episode(i);
  }

  EpisodeSums take_sums() override {
    EpisodeSums all{.scores = {0, 0}};
    for (Agent& each : agents_) all += std::exchange(each.sums, {});
    return all;
  }
  void count_only(std::int64_t each) override {
    for (Agent& agent : agents_) agent.counted = each;
  }
  bool counted_all() const override {
    return std::ranges::all_of(agents_, [](const Agent& each) { return each.counted <= 0; });
  }

 protected:
  struct Agent {
    int place = 0;
    int rewarded_end = 0;
    int previous = 0;
    double steps = 0;
    std::uint64_t episode = 0;
    std::int64_t counted = 1'000'000;
    EpisodeSums sums;
  };

  void begin_episode(std::size_t i) {
    Agent& agent = agents_[i];
    const auto number = static_cast<std::uint64_t>(first_) + i;
    agent.rewarded_end = static_cast<int>(random_bits(0, seed_, number, agent.episode++) % 2);
    agent.place = kCells / 2;
    agent.previous = 0;
    agent.steps = 0;
  }
  void show(std::size_t i, std::span<std::uint8_t> observations) const {
    const Agent& agent = agents_[i];
    const std::array seen = {agent.place, agent.rewarded_end, agent.previous};
    for (std::size_t k = 0; k < seen.size(); ++k) {
      observations[i * seen.size() + k] = static_cast<std::uint8_t>(seen[k]);
    }
  }

  std::vector<Agent> agents_;

 public:
  static inline int advances = 0;  ///< of all corridors

 private:
  std::uint64_t seed_;
  std::int64_t first_;
};

/// Goes on with the episode after the one that its state has.
struct CorridorWithState : Corridor {
  using Corridor::Corridor;

  std::vector<std::uint8_t> state() const override {
    std::vector<std::uint8_t> state;
    for (const Agent& each : agents_) state.push_back(static_cast<std::uint8_t>(each.episode));
    return state;
  }
  GoesOn restore(const std::vector<std::uint8_t>& state) override {
    for (std::size_t i = 0; i < state.size(); ++i) {
      agents_[i].episode = state[i];
      begin_episode(i);
    }
    return GoesOn::with_new_episodes;
  }
};

const PolicySettings kSmallPolicy{.embedding = 8, .memory = PolicyMemory::gru, .hidden = 16};

/// Goes to the right and back again. The value of a state is ten times the place, and how many
/// observations of the episode there were.
struct ThereAndBack : Policy {
  PolicyOutput act(const at::Tensor& observations, const at::Tensor& memory,
                   const at::Tensor& keep) const override {
    const at::Tensor seen = observations.to(at::kFloat);
    const at::Tensor looks = memory * keep.unsqueeze(1) + 1;
    const at::Tensor goes_right = seen.select(1, 2).ne(2).to(at::kFloat);
    const at::Tensor logits = at::stack({1 - goes_right, goes_right}, 1) * 1000;
    const at::Tensor values = 10 * seen.select(1, 0) + looks.squeeze(1);
    return {logits, values, at::cat({logits, values.unsqueeze(1)}, 1), looks};
  }
  PolicyOutput unroll(const at::Tensor&, const at::Tensor&, const at::Tensor&) const override {
    return {};
  }
  const EnvironmentSpec& spec() const override { return kCorridorSpec; }
  std::int64_t memory_size() const override { return 1; }
  at::Device device() const override { return at::kCPU; }
  std::vector<NamedTensor> parameters() const override { return {}; }
  std::vector<NamedTensor> buffers() const override { return {}; }
};

class CorridorRun : public OwnFolder {
 protected:
  CorridorRun() {
    torch::manual_seed(1);
    experiment_.optimizer = {OptimizerKind::adam, 1e-2, {}, 0.9, 0.999, 1e-8, 0, 0, true, 0.5};
    experiment_.checkpoint = {0, 1'000'000, 1, true};
    experiment_.distributed.collective_timeout = std::chrono::seconds(60);
    experiment_.log_every_steps = 1000;
    options_.output_dir = folder_;
    options_.seed = 3;
    settings_.samplers = 16;
    settings_.ppo.num_steps = 16;
    settings_.ppo.num_mini_batch = 2;
    settings_.pipeline.steps = 5120;
    settings_.pipeline.small_batch_steps = 2560;
    settings_.pipeline.transition_steps_per_node = 0;
    settings_.pipeline.rollout_steps = {8, 16};
    settings_.validation.episodes = 50;
  }

  /// What the run says.
  std::string train(EncodedPolicy& policy) {
    const dtool::trainer::Run run{experiment_, options_, meeting_, group_};
    testing::internal::CaptureStdout();
    run_ddppo(run, settings_, make_, policy);
    return testing::internal::GetCapturedStdout();
  }

  Scores scores_of(const EncodedPolicy& policy) {
    return Validator(make_, settings_.validation, policy, group_).validate();
  }

  Experiment experiment_;
  CommandLine options_;
  DdPpoSettings settings_;
  const MakeEnvironments make_ = [this](EpisodeSet set, std::uint64_t seed, std::int64_t first,
                                        int count) {
    return std::make_unique<Corridor>(set, seed, first, count, settings_.threads);
  };
  const Meeting meeting_;
  const Group group_;
};

}  // namespace

TEST_F(CorridorRun, ThePolicyLearnsToGoWhereTheRewardIs) {
  for (const int threads : {0, 2}) {
    settings_.threads = threads;
    EncodedPolicy policy(kCorridorSpec, kSmallPolicy, at::kCPU);
    const Scores before = scores_of(policy);
    ASSERT_EQ(before.size(), 2U);
    EXPECT_EQ(before[0].first, "validation_length");
    EXPECT_EQ(before[1].first, "validation_found") << "the last one decides";
    EXPECT_GT(before[0].second, 2.5);
    EXPECT_LT(before[1].second, 0.75);
    const std::string said = train(policy);
    const Scores after = scores_of(policy);
    EXPECT_LT(after[0].second, 2.5) << said;
    EXPECT_GT(after[1].second, 0.95) << said;
    EXPECT_NE(said.find("train found"), said.npos) << said;
  }
}

TEST_F(CorridorRun, WithoutAStateARunGoesOnWithNewEpisodes) {
  EncodedPolicy policy(kCorridorSpec, kSmallPolicy, at::kCPU);
  train(policy);
  settings_.pipeline.steps *= 2;
  options_.checkpoint = "latest";
  EncodedPolicy again(kCorridorSpec, kSmallPolicy, at::kCPU);
  const std::string said = train(again);
  EXPECT_NE(said.find("resumed from"), said.npos) << said;
  EXPECT_NE(said.find("0 of 16 samplers go on"), said.npos) << said;
  EXPECT_GT(scores_of(again)[1].second, 0.95) << said;
}

TEST_F(CorridorRun, AllSamplersGoToOtherScenesAfterSoManyRollouts) {
  Corridor::advances = 0;
  settings_.pipeline.listed = {{1280, {2, 4, 8, 4}, {}, 1, 1}, {2560, {2, 4, 16}, {}, 1, 1}};
  settings_.pipeline.steps = 3840;
  EncodedPolicy policy(kCorridorSpec, kSmallPolicy, at::kCPU);
  train(policy);
  EXPECT_EQ(Corridor::advances, 2) << "of 10 rollouts of the first stage those from 4 and 8 on";
}

TEST(Collector, ANewScenesFirstObservationBeginsAnEpisode) {
  const ThereAndBack policy;
  Corridor corridors(EpisodeSet::training, 1, 0, 4);
  Collector collector(corridors, policy, 0.5, 1, 0);
  Rollout rollout(3, 4, policy);
  const auto never = [](std::int64_t) { return false; };
  collector.collect(rollout, 0, never);
  const at::Tensor value = rollout.values[3].clone();
  collector.advance();
  collector.collect(rollout, 3, never);
  EXPECT_EQ(rollout.keep[0].sum().item<double>(), 0);
  EXPECT_TRUE(rollout.values[0].eq(10 * (kCells / 2) + 1).all().item<bool>()) << "the first look";
  EXPECT_FALSE(rollout.values[0].equal(value)) << "that of the state where they were";
  EXPECT_EQ(corridors.take_sums().episodes, 0);
}

TEST_F(CorridorRun, ReturnsAreNormalisedButShownAsTheyAre) {
  settings_.ppo.normalise_returns = true;
  EncodedPolicy policy(kCorridorSpec, kSmallPolicy, at::kCPU);
  const std::string said = train(policy);
  EXPECT_GT(scores_of(policy)[1].second, 0.95) << said;
  std::ifstream file(folder_ / "metrics.jsonl");
  const std::string lines(std::istreambuf_iterator<char>(file), {});
  const auto last = [&](const std::string& name) {
    return std::stod(lines.substr(lines.rfind("\"" + name + "\":") + name.size() + 3));
  };
  EXPECT_GT(last("train_reward"), 0.9) << lines;
  EXPECT_EQ(last("train_reward"), last("train_found")) << lines;
}

TEST_F(CorridorRun, ListedStagesFollowEachOtherWithLossesOfTheirOwn) {
  const LossWeights no_policy{1e-6, 0, 0};
  settings_.pipeline.listed = {{2560, {2, 4, 8}, no_policy, 1, 1}, {5120, {2, 4, 16}, {}, 1, 0.5}};
  settings_.pipeline.steps = 7680;
  EncodedPolicy policy(kCorridorSpec, kSmallPolicy, at::kCPU);
  const std::string said = train(policy);
  EXPECT_GT(scores_of(policy)[1].second, 0.95) << said;
  EXPECT_NE(said.find("stage 2 of 2: rollouts of 16 steps"), said.npos) << said;
  // What is logged is the loss with the stage's own weights.
  settings_.pipeline.listed.resize(1);
  settings_.pipeline.listed[0].loss = {0.1, 1e6, 0};
  EncodedPolicy another(kCorridorSpec, kSmallPolicy, at::kCPU);
  const std::string heavy = train(another);
  const auto loss_in = [](const std::string& text) {
    return std::stod(text.substr(text.find("loss ") + 5));
  };
  EXPECT_GT(loss_in(heavy), 1000) << heavy;
  EXPECT_LT(loss_in(said), 1000) << said;
}

TEST(Collector, ALimitCutsAnEpisodeOffButNotTheValueOfWhatWouldHaveCome) {
  const ThereAndBack policy;
  for (const int threads : {0, 1}) {
    Corridor corridors(EpisodeSet::training, 1, 0, 4, threads);
    Collector collector(corridors, policy, 0.5, 1, 0);
    constexpr std::int64_t kSteps = 10;
    Rollout rollout(kSteps, 4, policy);
    collector.collect(rollout, 0, [](std::int64_t) { return false; });
    for (std::int64_t step = 0; step < kSteps; ++step) {
      // The eighth step leads back to the middle; the policy's ninth look would have seen that.
      const double expected = step + 1 == kLimit ? 0.5 * (10 * (kCells / 2) + 9) : 0;
      EXPECT_EQ(rollout.last_values[step].min().item<double>(), expected) << step;
      EXPECT_EQ(rollout.last_values[step].max().item<double>(), expected) << step;
      EXPECT_EQ(rollout.rewards[step].abs().max().item<double>(), 0) << step;
      EXPECT_EQ(rollout.keep[step + 1].sum().item<double>(), step + 1 == kLimit ? 0 : 4);
    }
  }
}

TEST_F(CorridorRun, AValidationPlaysTheSameEpisodesAgainInTheEnvironmentsThatItHas) {
  std::vector<int> made;
  const MakeEnvironments make = [&](EpisodeSet set, std::uint64_t seed, std::int64_t first,
                                    int count) {
    made.push_back(count);
    return std::make_unique<CorridorWithState>(set, seed, first, count);
  };
  const EncodedPolicy policy(kCorridorSpec, kSmallPolicy, at::kCPU);
  settings_.validation.environments = 30;
  settings_.validation.episodes = 100;
  EXPECT_EQ(settings_.validation.episodes_of_each(), 4);
  Validator validator(make, settings_.validation, policy, group_);
  const Scores first = validator.validate();
  EXPECT_EQ(validator.validate(), first);
  EXPECT_EQ(made, std::vector<int>{30});

  settings_.validation.step_limit = 1;
  EXPECT_THROW(validator.validate(), RunFailed) << "an episode has two steps or more";
  settings_.validation.step_limit = 8;
  settings_.validation.environments = 0;
  EXPECT_NE(Validator(make, settings_.validation, policy, group_).validate(), first);
  EXPECT_EQ(made, (std::vector<int>{30, 100}));
}
