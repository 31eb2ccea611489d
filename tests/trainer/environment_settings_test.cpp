// SPDX-License-Identifier: MIT
// The tables of a ppo experiment, and what workers are told of them.
#include "trainer/environments/environment_settings.h"

#include <gtest/gtest.h>

#include "tests/trainer/experiment_text.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

WorkerSettings worker_of(const std::string& table) {
  const Experiment experiment =
      experiment_of("workload = 'ppo'\n[environment]\n" + table, "environment_settings_test.toml");
  return dynamic_cast<const PpoWorkloadSettings&>(*experiment.own).worker;
}

std::string mistake_in_table(const std::string& table) {
  try {
    worker_of(table);
  } catch (const UsageError& mistake) {
    return line_and_fault(mistake) + (mistake.hint.empty() ? "" : " | " + mistake.hint);
  }
  return "none";
}

TEST(EnvironmentSettingsTest, AWorkerIsToldWhatTheFileSays) {
  const WorkerSettings worker = worker_of(R"(
gymnasium = "CartPole-v1"
import = "my_module"
wrappers = ["a.B", {name = "c.D", kwargs = {n = 4}}]
kwargs = {text = "\"é\n", number = 1.5, list = [1, true], table = {a = 1}}
observations = {image = "codes", mission = "drop", size = 11}
scores = ["is_success"]
python = "python3.11"
workers = 3
on_failure = "restart"
step_timeout_seconds = 5)");
  EXPECT_EQ(worker.name, "CartPole-v1");
  EXPECT_EQ(task_line(worker, EpisodeSet::validation, 16, 8),
            R"({"environments":8,"first":16,"gymnasium":"CartPole-v1","import":"my_module",)"
            R"("kwargs":{"list":[1,true],"number":1.5,"table":{"a":1},"text":"\"é\n"},)"
            R"("observations":{"image":"codes","mission":"drop","size":11},"protocol":1,)"
            R"("scores":["is_success"],"set":"validation",)"
            R"("wrappers":["a.B",{"kwargs":{"n":4},"name":"c.D"}]})"
            "\n");
  EXPECT_EQ(worker.python, "python3.11");
  EXPECT_EQ(worker.workers, 3);
  EXPECT_EQ(worker.on_failure, OnFailure::restart);
  EXPECT_EQ(worker.step_timeout, std::chrono::seconds(5));
  EXPECT_TRUE(worker.command.empty());
}

TEST(EnvironmentSettingsTest, AWorkerMayHaveAVectorEnvironmentOrSeedEveryEpisode) {
  const WorkerSettings plain = worker_of("gymnasium = 'X'");
  EXPECT_EQ(plain.request, R"({"gymnasium":"X"})");
  EXPECT_FALSE(plain.is_vector || plain.seeds_every_episode);
  const WorkerSettings vector = worker_of("gymnasium = 'X'\nvector = true");
  EXPECT_EQ(vector.request, R"({"gymnasium":"X","vector":true})");
  EXPECT_TRUE(vector.is_vector);
  const WorkerSettings seeded = worker_of("gymnasium = 'X'\nseed_every_episode = true");
  EXPECT_EQ(seeded.request, R"({"gymnasium":"X","seed_every_episode":true})");
  EXPECT_TRUE(seeded.seeds_every_episode);
  EXPECT_TRUE(worker_of("command = ['w']").seeds_every_episode) << "as the protocol says";
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nvector = true\nseed_every_episode = true"),
            ":5: environment.seed_every_episode is not for environment.vector, which goes on with "
            "its own generator");
  EXPECT_EQ(mistake_in_table("command = ['w']\nvector = true"),
            ":4: environment.vector is for dtool_env.py, and environment.command names another "
            "program");
}

TEST(EnvironmentSettingsTest, AProgramOfAnyLanguageHasArguments) {
  const WorkerSettings worker = worker_of("command = ['./worker', '--fast']\nkwargs = {a = 1}\n");
  EXPECT_EQ(worker.command, (std::vector<std::string>{"./worker", "--fast"}));
  EXPECT_EQ(worker.name, "./worker");
  EXPECT_EQ(worker.request, R"({"kwargs":{"a":1}})");
  EXPECT_EQ(worker.on_failure, OnFailure::stop);
}

TEST(EnvironmentSettingsTest, MistakesAreNamed) {
  EXPECT_EQ(mistake_in_table("samplers = 4"),
            ":2: environment.gymnasium is missing | it is the id of a Gymnasium environment, such "
            "as \"CartPole-v1\"; or environment.command starts a program that has environments");
  EXPECT_EQ(mistake_in_table("command = []"),
            ":3: environment.command names no program | it is a list: the program, then its "
            "arguments");
  EXPECT_EQ(mistake_in_table("command = ['w']\ngymnasium = 'X'"),
            ":4: environment.gymnasium is for dtool_env.py, and environment.command names another "
            "program");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nkwargs = 3"),
            ":4: environment.kwargs is not a table | docs/simulators.md has an example");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nwrappers = 'a.B'"),
            ":4: environment.wrappers is not a list | docs/simulators.md has an example");
  EXPECT_EQ(
      mistake_in_table("gymnasium = 'X'\nkwargs = {a = [inf]}"),
      ":4: environment.kwargs: has a date, or a number that is not finite, which JSON has not");
  EXPECT_EQ(
      mistake_in_table("gymnasium = 'X'\nkwargs = {a = 2024-01-01}"),
      ":4: environment.kwargs: has a date, or a number that is not finite, which JSON has not");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nthreads = 2"),
            ":4: environment.threads is not for workload = \"ppo\", which has environment.workers");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\non_failure = 'again'"),
            ":4: environment.on_failure is one of stop, restart, not 'again'");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nscores = ['won', 'reward']"),
            ":4: environment.scores names the reward, which is always the first score | leave it "
            "out");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nworkers = 0"),
            ":4: environment.workers must be from 1 to 4096, not 0");
  EXPECT_EQ(mistake_in_table("gymnasium = 'X'\nkwargs = {a = '" + std::string(70'000, 'x') + "'}"),
            ":4: environment.kwargs is longer than 65536 bytes | have the environment read a file");
}

TEST(EnvironmentSettingsTest, OtherWorkloadsDoNotKnowItsKeys) {
  const auto mistake = [](const std::string& text) -> std::string {
    try {
      experiment_of(text, "environment_settings_test.toml");
    } catch (const UsageError& error) {
      return line_and_fault(error);
    }
    return "none";
  };
  EXPECT_EQ(mistake("workload = 'objectnav'\nenvironment.gymnasium = 'X'"),
            ":2: unknown key 'environment.gymnasium'");
  EXPECT_EQ(mistake("workload = 'ppo'\nenvironment.gymnasium = 'X'\nenvironment.least_side = 9"),
            ":3: unknown key 'environment.least_side'");
}

// What a worker answers.

std::string answer_mistake(const std::string& line) {
  WorkerSettings settings;
  settings.name = "X";
  try {
    read_answer(settings, line);
  } catch (const UsageError& mistake) {
    return mistake.what();
  }
  return "none";
}

std::string spec_with(const std::string& observations, const std::string& actions) {
  return R"({"protocol":1,"observations":[)" + observations + R"(],"actions":)" + actions + "}";
}

const std::string kPart = R"({"name":"a","kind":"codes","shape":[2],"codes":3})";
const std::string kChoices = R"({"choices":[2]})";

TEST(EnvironmentProtocolTest, ASpecIsRead) {
  WorkerSettings settings;
  settings.scores = {"won"};
  const WorkerAnswer answer =
      read_answer(settings, R"({"protocol":1,"package":"p 1","hash":"ab","more":1,"observations":[)"
                            R"({"name":"i","kind":"pixels","shape":[3,4,5],"codes":null},)"
                            R"({"name":"n","kind":"numbers","shape":[]}],)"
                            R"("actions":{"low":[-1,null],"high":[1e99,0.5]}})");
  EXPECT_EQ(answer.spec.observations,
            (std::vector<Observed>{{"i", {3, 4, 5}, ObservedKind::pixels, 0},
                                   {"n", {}, ObservedKind::numbers, 0}}));
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(answer.spec.actions.low, (std::vector<float>{-1, -kInfinite}));
  EXPECT_EQ(answer.spec.actions.high, (std::vector<float>{kInfinite, 0.5F}));
  EXPECT_EQ(answer.spec.scores, (std::vector<std::string>{"reward", "won"}));
  EXPECT_EQ(answer.package, "p 1");
  EXPECT_EQ(answer.hash, "ab");
  EXPECT_EQ(
      describe(answer),
      "i [3,4,5] pixels, n [] numbers, actions from [-1.0,null] to [null,0.5], of p 1, source ab");
}

TEST(EnvironmentProtocolTest, ASpecThatIsNoneIsRefused) {
  const std::string begin = "environment X: its worker's spec cannot be used: ";
  const auto fault = [&](const std::string& observations, const std::string& actions = kChoices) {
    const std::string words = answer_mistake(spec_with(observations, actions));
    return words.starts_with(begin) ? words.substr(begin.size()) : words;
  };
  EXPECT_EQ(answer_mistake(spec_with(kPart, kChoices)), "none");
  EXPECT_EQ(answer_mistake(R"({"protocol":2})"), begin + "it speaks another protocol than 1");
  EXPECT_EQ(fault(""), "an observation has 0 bytes, not 1 to 67108864");
  EXPECT_EQ(fault(kPart + "," + kPart), "two observations are named a");
  EXPECT_EQ(fault(R"({"name":"a b","kind":"numbers","shape":[]})"),
            "the name of an observation is not 1 to 64 visible characters of ASCII");
  EXPECT_EQ(fault(R"({"name":"a","kind":"words","shape":[]})"),
            "the kind of observation a is not codes, pixels or numbers");
  EXPECT_EQ(fault(R"({"name":"a","kind":"pixels","shape":[4,4]})"),
            "observation a has not the shape of pixels, [channels, rows, columns]");
  for (const std::string side : {"0", "-1", "1.5", "\"2\"", "18446744073709551615", "67108865"}) {
    EXPECT_EQ(fault(R"({"name":"a","kind":"numbers","shape":[)" + side + "]}"),
              "a side of observation a is not a whole number from 1 to 67108864");
  }
  EXPECT_EQ(fault(R"({"name":"a","kind":"pixels","shape":[67108864,67108864,67108864]})"),
            "observation a is too large");
  for (const std::string codes : {"0", "257"}) {
    EXPECT_EQ(fault(R"({"name":"a","kind":"codes","shape":[1],"codes":)" + codes + "}"),
              "the number of codes of a is not a whole number from 1 to 256");
  }
  EXPECT_EQ(fault(kPart, R"({"choices":[]})"),
            "the choices of an action are not from 1 to 65536 together");
  EXPECT_EQ(fault(kPart, R"({"choices":[65536,2]})"),
            "the choices of an action are not from 1 to 65536 together");
  EXPECT_EQ(fault(kPart, R"({"low":[1],"high":[1]})"), "number 0 of an action has equal limits");
  EXPECT_EQ(fault(kPart, R"({"low":[0],"high":[1,2]})"),
            "the lower and upper limits of actions are not equally many");
  EXPECT_EQ(answer_mistake(std::string(100'000, '[')),
            "environment X: its worker said what is no answer: \"" + std::string(80, '[') + "\"");
}

TEST(EnvironmentProtocolTest, ArraysBeginAtMultiplesOf64AndDoNotOverlap) {
  EnvironmentSpec spec;
  spec.observations = {{"a", {3}, ObservedKind::codes, 2}, {"b", {5}, ObservedKind::numbers, 0}};
  spec.actions.choices = {2, 2};
  spec.scores = {"reward", "won"};
  const WorkerLayout layout = layout_of(spec, 33);
  EXPECT_EQ(layout.seeds, 64);
  EXPECT_EQ(layout.actions, 64 + 192);
  EXPECT_EQ(layout.rewards, 256 + 320);
  EXPECT_EQ(layout.endings, 576 + 192);
  EXPECT_EQ(layout.scores, 768 + 64);
  EXPECT_EQ(layout.observations, (std::vector<std::int64_t>{832 + 192, 1024 + 2 * 128}));
  EXPECT_EQ(layout.last_observations, (std::vector<std::int64_t>{1152, 1280 + 704}));
  EXPECT_EQ(layout.size, 1984 + 704);
}

}  // namespace
