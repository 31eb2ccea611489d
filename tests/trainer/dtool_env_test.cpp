// SPDX-License-Identifier: MIT
// dtool_env.py with a stand-in for Gymnasium (tests/trainer/stand_in): every kind of space, the
// arrays that it writes, and what it says of mistakes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "trainer/environments/process_environments.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

class DtoolEnvTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("/usr/bin/python3 -c 'import numpy' > /dev/null 2>&1") != 0) {
      ASSERT_EQ(std::getenv("CI"), nullptr) << "python3-numpy is not installed";
      GTEST_SKIP() << "needs python3-numpy";
    }
    setenv("PYTHONPATH", DTOOL_SOURCE_DIR "/tests/trainer/stand_in", 1);
  }
  void TearDown() override { unsetenv("PYTHONPATH"); }
};

WorkerSettings task_of(const std::string& request) {
  WorkerSettings settings;
  settings.name = "X";
  settings.python = "/usr/bin/python3";
  settings.request = request;
  return settings;
}

std::string task_mistake(const std::string& request, std::vector<std::string> scores = {}) {
  WorkerSettings settings = task_of(request);
  settings.scores = std::move(scores);
  try {
    const ProcessEnvironments environments(settings, EpisodeSet::training, 1, 0, 2, 1);
  } catch (const UsageError& mistake) {
    return std::string(mistake.what()) + " | " + mistake.hint;
  }
  return "none";
}

/// Two environments, with the arrays of their steps.
struct PairOfThem {
  explicit PairOfThem(const WorkerSettings& settings, EpisodeSet set = EpisodeSet::training)
      : environments(settings, set, 1, 0, 2, 1),
        actions(static_cast<std::size_t>(2 * environments.spec().actions.values())),
        observations(static_cast<std::size_t>(2 * environments.spec().observation_bytes())),
        last_observations(observations) {
    environments.observe(observations);
  }

  void step() {
    environments.begin(0, 2, {actions, rewards, endings, observations, last_observations});
    environments.wait();
  }

  /// The part of environment 1's observation.
  const std::uint8_t* part(const std::vector<std::uint8_t>& rows, const std::string& name) const {
    std::int64_t at = environments.spec().observation_bytes();
    for (const Observed& each : environments.spec().observations) {
      if (each.name == name) return &rows[static_cast<std::size_t>(at)];
      at += each.bytes();
    }
    return nullptr;
  }
  float number(const std::vector<std::uint8_t>& rows, const std::string& name,
               int index = 0) const {
    float value = 0;
    std::memcpy(&value, part(rows, name) + index * 4, sizeof value);
    return value;
  }

  ProcessEnvironments environments;
  std::vector<float> actions;
  std::vector<std::uint8_t> observations;
  std::vector<std::uint8_t> last_observations;
  std::vector<float> rewards = std::vector<float>(2);
  std::vector<Ending> endings = std::vector<Ending>(2);
};

/// What an environment's failure within four steps is told as; `none` if there is none.
std::string words_of_failure(const WorkerSettings& settings) {
  PairOfThem pair(settings);
  testing::internal::CaptureStderr();
  std::string words = "none";
  try {
    for (int i = 0; i < 4; ++i) pair.step();
  } catch (const EnvironmentFailed& failure) {
    words = failure.what();
  }
  testing::internal::GetCapturedStderr();
  return words;
}

TEST_F(DtoolEnvTest, EveryKindOfSpaceIsServed) {
  WorkerSettings settings = task_of(R"({"gymnasium":"Everything-v0","import":"gymnasium"})");
  settings.scores = {"is_success"};
  PairOfThem pair(settings);
  EXPECT_EQ(pair.environments.spec().observations,
            (std::vector<Observed>{{"picture", {3, 4, 5}, ObservedKind::pixels, 0},
                                   {"stack", {2, 5, 6}, ObservedKind::pixels, 0},
                                   {"number", {2}, ObservedKind::numbers, 0},
                                   {"scalar", {1}, ObservedKind::numbers, 0},
                                   {"inner.0", {1}, ObservedKind::codes, 3},
                                   {"inner.1", {2}, ObservedKind::codes, 2}}));
  EXPECT_EQ(pair.environments.spec().actions.choices, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(pair.environments.answer().package, "gymnasium 9.9");
  EXPECT_EQ(pair.environments.answer().hash.size(), 64U);
  const float seed = pair.number(pair.observations, "number", 1);
  pair.actions = {0, 1, 1, 2};
  for (int step = 1; step <= 4; ++step) {
    pair.step();
    EXPECT_EQ(pair.rewards, (std::vector<float>{1, 12}));
    const int shown = step % 4;
    // Channels come first: [0][1][2] and [2][3][4] of [3][4][5].
    EXPECT_EQ(pair.part(pair.observations, "picture")[1 * 5 + 2], shown);
    EXPECT_EQ(pair.part(pair.observations, "picture")[2 * 20 + 3 * 5 + 4], 9);
    EXPECT_EQ(pair.number(pair.observations, "number"), static_cast<float>(shown));
    EXPECT_EQ(pair.number(pair.observations, "scalar"), 0.5F);
    EXPECT_EQ(*pair.part(pair.observations, "inner.0"), shown % 3);
    EXPECT_EQ(pair.part(pair.observations, "inner.1")[0], 1);
    EXPECT_EQ(pair.endings[1], step == 4 ? Ending::terminated : Ending::none);
  }
  EXPECT_NE(pair.number(pair.observations, "number", 1), seed);  // of the next episode
  const EpisodeSums sums = pair.environments.take_sums();
  EXPECT_EQ(sums.scores, (std::vector<double>{4 + 48, 2}));
}

TEST_F(DtoolEnvTest, ALimitLeavesTheLastObservation) {
  PairOfThem pair(task_of(
      R"({"gymnasium":"Everything-v0","kwargs":{"limit":2},)"
      R"("wrappers":["gymnasium.Doubled",{"name":"gymnasium.Doubled","kwargs":{"factor":5}}]})"));
  pair.actions = {0, 1, 0, 1};
  pair.step();
  EXPECT_EQ(pair.rewards[1], 10);
  pair.step();
  EXPECT_EQ(pair.endings[1], Ending::truncated);
  EXPECT_EQ(pair.number(pair.last_observations, "number"), 2);
  EXPECT_EQ(pair.number(pair.observations, "number"), 0);
}

TEST_F(DtoolEnvTest, BoxesOfActionsAreClippedAndKindsChosen) {
  PairOfThem pair(task_of(R"({"gymnasium":"Boxed-v0","observations":{"observation":201}})"));
  EXPECT_EQ(pair.environments.spec().observations,
            (std::vector<Observed>{{"observation", {3}, ObservedKind::codes, 201}}));
  EXPECT_EQ(pair.environments.spec().actions.low, (std::vector<float>{-1, -1}));
  EXPECT_EQ(pair.environments.spec().actions.high, (std::vector<float>{2, 2}));
  pair.actions = {-50, 0.5, 1.5, 50};
  pair.step();
  EXPECT_EQ(pair.rewards, (std::vector<float>{-9.5, 17}));
  const PairOfThem numbers(task_of(R"({"gymnasium":"Boxed-v0"})"));
  EXPECT_EQ(numbers.environments.spec().observations[0].kind, ObservedKind::numbers);
  EXPECT_EQ(numbers.number(numbers.observations, "observation", 2), 200);
}

TEST_F(DtoolEnvTest, MistakesSayWhatToDo) {
  EXPECT_EQ(task_mistake(R"({"gymnasium":"None-v0"})"),
            "environment X: no None-v0 | environment.gymnasium is an id of Gymnasium's, and "
            "environment.import a module that registers it");
  const std::string module = task_mistake(R"({"gymnasium":"Boxed-v0","import":"no_such"})");
  EXPECT_EQ(module.substr(0, module.find(" looked in")),
            "environment X: module no_such cannot be imported: No module named 'no_such' | "
            "/usr/bin/python3");
  EXPECT_EQ(task_mistake(R"({"gymnasium":"Boxed-v0","wrappers":["gymnasium.None"]})"),
            "environment X: there is no wrapper gymnasium.None | a wrapper is "
            "\"package.module.Class\"");
  EXPECT_EQ(task_mistake(R"({"gymnasium":"Graphed-v0"})"),
            "environment X: observation observation is a Graph, which is not served | a wrapper "
            "may turn it into a Box, or observations = {\"observation\" = \"drop\"} leaves it out");
  EXPECT_EQ(task_mistake(R"({"gymnasium":"Everything-v0","observations":{"number":"codes"}})"),
            "environment X: observation number has no codes, not 1 to 256 | observations = "
            "{\"number\" = \"numbers\"}, or the wrapper gymnasium.wrappers.FlattenObservation");
  EXPECT_NE(task_mistake(R"({"gymnasium":"Everything-v0","observations":{"none":"codes"}})")
                .find("there is no observation none in "),
            std::string::npos);
  EXPECT_NE(task_mistake(R"({"gymnasium":"Boxed-v0","kwargs":{"colour":1}})")
                .find("unexpected keyword argument 'colour'"),
            std::string::npos);
  EXPECT_NE(task_mistake(R"({"gymnasium":"Everything-v0","observations":{"none":"drop"}})")
                .find("there is no observation none in "),
            std::string::npos);
  EXPECT_EQ(task_mistake(R"({"gymnasium":"Everything-v0","observations":{"word":"drop"}})"),
            "none");
  EXPECT_EQ(task_mistake(R"({"gymnasium":"Everything-v0"})", {"is_success", "won"}),
            "environment X: at an episode's end info has no won, only is_success | "
            "environment.scores names keys of info");
  unsetenv("PYTHONPATH");
  EXPECT_EQ(task_mistake(R"({"gymnasium":"Boxed-v0"})"),
            "environment X: /usr/bin/python3 cannot import gymnasium and numpy: No module named "
            "'gymnasium' | /usr/bin/python3 -m pip install gymnasium numpy");
}

TEST_F(DtoolEnvTest, AnErrorIsToldWithItsPlace) {
  const auto failure_of = [](const WorkerSettings& settings) -> std::string {
    const std::string words = words_of_failure(settings);
    return words.substr(std::min(words.size(), words.find("): ") + 3));
  };
  const std::string raised =
      failure_of(task_of(R"({"gymnasium":"Everything-v0","kwargs":{"fault":"raise"}})"));
  EXPECT_TRUE(raised.starts_with("its worker failed: ZeroDivisionError: nothing left (")) << raised;
  EXPECT_NE(raised.find("gymnasium.py, line "), std::string::npos) << raised;
  const std::string shape =
      failure_of(task_of(R"({"gymnasium":"Everything-v0","kwargs":{"fault":"shape"}})"));
  EXPECT_TRUE(
      shape.starts_with("its worker failed: ValueError: observation number has shape (1,) "
                        "instead of (2,) (dtool_env.py, line "))
      << shape;
}

TEST_F(DtoolEnvTest, OnlyAMistakeOfOneWorkerIsShown) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(ProcessEnvironments(task_of(R"({"gymnasium":"Broken-v0"})"), EpisodeSet::training, 1,
                                   0, 4, 4),
               UsageError);
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_LE(shown.find("Traceback"), shown.size()) << shown;
  EXPECT_EQ(shown.find("Traceback"), shown.rfind("Traceback")) << shown;
}

/// The seeds of environment 1's first three episodes, from 1000 on those of its own generator.
std::vector<int> seeds_in(const WorkerSettings& settings, EpisodeSet set) {
  PairOfThem pair(settings, set);
  std::vector<int> seeds;
  for (int episode = 0; episode < 3; ++episode) {
    seeds.push_back(static_cast<int>(pair.number(pair.observations, "number", 1)));
    for (int step = 0; step < 4; ++step) pair.step();
  }
  return seeds;
}

TEST_F(DtoolEnvTest, AGeneratorIsSeededOnceInTrainingAndAlwaysInAValidation) {
  WorkerSettings once = task_of(R"({"gymnasium":"Everything-v0"})");
  once.seeds_every_episode = false;
  const std::vector<int> seeds = seeds_in(once, EpisodeSet::training);
  EXPECT_LT(seeds[0], 1000);
  EXPECT_GE(seeds[1], 1000);
  EXPECT_GE(seeds[2], 1000);
  EXPECT_EQ(seeds_in(once, EpisodeSet::training), seeds);
  for (const int each : seeds_in(once, EpisodeSet::validation)) EXPECT_LT(each, 1000);
  const WorkerSettings always =
      task_of(R"({"gymnasium":"Everything-v0","seed_every_episode":true})");
  for (const int each : seeds_in(always, EpisodeSet::training)) EXPECT_LT(each, 1000);
}

TEST_F(DtoolEnvTest, AnEpisodeThatCannotBeginIsToldWithItsNumberAndSeed) {
  const auto words_of = [](const std::string& keys, bool seeds_every_episode) -> std::string {
    WorkerSettings settings =
        task_of(R"({"gymnasium":"Everything-v0","kwargs":{"fault":"reset"})" + keys + "}");
    settings.seeds_every_episode = seeds_every_episode;
    const std::string words = words_of_failure(settings);
    return words.substr(0, words.find(" (/"));
  };
  const std::string once = words_of("", false);
  const std::string always = words_of(R"(,"seed_every_episode":true)", true);
  const auto seed_in = [](const std::string& words) {
    return std::stoul(words.substr(words.find("seed ") + 5));
  };
  EXPECT_NE(once.find(" of episode 0): its worker failed: ZeroDivisionError: no beginning"),
            std::string::npos)
      << once;
  EXPECT_TRUE(once.starts_with("environment 0 (X, episode 1, seed ")) << once;
  EXPECT_TRUE(always.starts_with("environment 0 (X, episode 1, seed ")) << always;
  EXPECT_EQ(always.find(" of episode"), std::string::npos) << always;
  EXPECT_NE(seed_in(once), seed_in(always)) << "the seed of episode 0, and that of episode 1";
}

TEST_F(DtoolEnvTest, AVectorEnvironmentIsAWorkersOfThemAll) {
  for (const std::string mode : {"NextStep", "SameStep", "Disabled"}) {
    WorkerSettings settings =
        task_of(R"({"gymnasium":"V","vector":true,"kwargs":{"mode":")" + mode + "\"}}");
    settings.is_vector = true;
    settings.scores = {"length"};
    PairOfThem pair(settings);
    SCOPED_TRACE(mode);
    EXPECT_FALSE(pair.environments.steps_meanwhile()) << "no half of it steps alone";
    EXPECT_EQ(pair.environments.spec().actions.choices, std::vector<std::int64_t>{3});
    pair.actions = {0, 2};
    const bool is_next = mode == "NextStep";
    for (int step = 1; step <= 4; ++step) {
      pair.step();
      EXPECT_EQ(pair.rewards, (std::vector<float>{is_next && step == 4 ? 0.0F : 1.0F, 3}));
      EXPECT_EQ(pair.endings[0], step == 3 ? Ending::truncated : Ending::none);
      EXPECT_EQ(pair.endings[1], step == 4 ? Ending::truncated : Ending::none);
      const int shown = step < 4 || is_next ? step : 0;
      EXPECT_EQ(pair.number(pair.observations, "number"), static_cast<float>(shown));
      EXPECT_EQ(pair.part(pair.observations, "picture")[1 * 5 + 2], shown);
      EXPECT_EQ(*pair.part(pair.observations, "code"), shown);
    }
    EXPECT_EQ(pair.number(pair.last_observations, "number"), 4);
    EXPECT_EQ(pair.part(pair.last_observations, "picture")[1 * 5 + 2], 4);
    EXPECT_EQ(pair.environments.take_sums().scores, (std::vector<double>{3 + 12, 30 + 40}));
    const auto state = pair.environments.state();
    pair.environments.restore({state.begin(), state.begin() + 8});
    pair.environments.observe(pair.observations);
    EXPECT_EQ(pair.number(pair.observations, "number"), 0) << "all of them begin anew";
    const ProcessEnvironments halves(settings, EpisodeSet::training, 1, 0, 4, 2);
    EXPECT_TRUE(halves.steps_meanwhile());
  }
}

}  // namespace
