// SPDX-License-Identifier: MIT
// Environments in processes of their own: the example of docs/simulators.md, workers that go
// wrong in every way, and what is left of them.
#include "trainer/environments/process_environments.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "tests/unit/temporary_folder.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

WorkerSettings example() {
  WorkerSettings settings;
  settings.name = "corridor";
  settings.request = "{}";
  settings.command = {DTOOL_EXAMPLE_WORKER};
  return settings;
}

WorkerSettings faulty(const std::vector<std::string>& arguments) {
  WorkerSettings settings;
  settings.name = "faulty";
  settings.request = "{}";
  settings.command = {DTOOL_FAULTY_WORKER};
  settings.command.insert(settings.command.end(), arguments.begin(), arguments.end());
  settings.step_timeout = std::chrono::seconds(1);
  settings.start_timeout = std::chrono::seconds(60);
  return settings;
}

/// Environments with the arrays of their steps.
struct Stepped {
  Stepped(const WorkerSettings& settings, int count, int workers, std::int64_t first = 0,
          EpisodeSet set = EpisodeSet::training)
      : environments(settings, set, 7, first, count, workers),
        rewards(static_cast<std::size_t>(count)),
        endings(static_cast<std::size_t>(count)),
        actions(static_cast<std::size_t>(count * environments.spec().actions.values())),
        observations(static_cast<std::size_t>(count * environments.spec().observation_bytes())),
        last_observations(observations.size()) {
    environments.observe(observations);
  }

  StepArrays arrays() { return {actions, rewards, endings, observations, last_observations}; }

  void step() {
    environments.begin(0, environments.count(), arrays());
    environments.wait();
  }

  /// The observation's byte `byte` of environment `i`.
  int code(int i) const { return observations[static_cast<std::size_t>(i) * 5]; }
  static float number(const std::vector<std::uint8_t>& rows, int i) {
    float value = 0;
    std::memcpy(&value, &rows[static_cast<std::size_t>(i) * 5 + 1], sizeof value);
    return value;
  }

  ProcessEnvironments environments;
  std::vector<float> rewards;
  std::vector<Ending> endings;
  std::vector<float> actions;
  std::vector<std::uint8_t> observations;
  std::vector<std::uint8_t> last_observations;
};

std::string start_mistake(const WorkerSettings& settings, int count = 2, int workers = 1) {
  try {
    const Stepped stepped(settings, count, workers);
  } catch (const UsageError& mistake) {
    return std::string(mistake.what()) + (mistake.hint.empty() ? "" : " | " + mistake.hint);
  }
  return "none";
}

/// Without the numbers of processes.
std::string failure_of(const WorkerSettings& settings) {
  Stepped stepped(settings, 4, 2, 10);
  try {
    for (int i = 0; i < 6; ++i) stepped.step();
  } catch (const EnvironmentFailed& failure) {
    std::string words = failure.what();
    if (const auto at = words.find(" (process "); at != words.npos) {
      words.erase(at, words.find(')', at) + 1 - at);
    }
    if (const auto at = words.find(", seed "); at != words.npos) {
      words.erase(at, words.find(')', at) - at);
    }
    return words;
  }
  return "none";
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(ProcessEnvironmentsTest, TheExampleAnswersWithItsSpec) {
  const Stepped stepped(example(), 3, 2);
  const EnvironmentSpec& spec = stepped.environments.spec();
  EXPECT_EQ(spec.observations, (std::vector<Observed>{{"cell", {1}, ObservedKind::codes, 5},
                                                      {"time", {1}, ObservedKind::numbers, 0}}));
  EXPECT_EQ(spec.actions.choices, std::vector<std::int64_t>{2});
  EXPECT_EQ(spec.scores, std::vector<std::string>{"reward"});
  EXPECT_EQ(stepped.environments.answer().package, "corridors 1.0");
  EXPECT_EQ(stepped.environments.made_of(),
            (std::map<std::string, std::string>{{"name", "corridor"},
                                                {"arguments", "{}"},
                                                {"package", "corridors 1.0"},
                                                {"source", ""}}));
  EXPECT_EQ(stepped.environments.workers(), 2);
  EXPECT_EQ(stepped.environments.count(), 3);
}

TEST(ProcessEnvironmentsTest, EndsAreToldApartAndTheLastObservationIsKept) {
  Stepped stepped(example(), 4, 2);
  stepped.actions = {1, 0, 1, 0};
  std::vector<int> cells = {stepped.code(0), stepped.code(2)};
  for (int step = 1; step <= 10; ++step) {
    stepped.step();
    for (const int i : {0, 2}) {
      int& cell = cells[static_cast<std::size_t>(i / 2)];
      const bool is_there = cell == 3;
      EXPECT_EQ(stepped.rewards[static_cast<std::size_t>(i)], is_there ? 1.0F : -0.1F);
      EXPECT_EQ(stepped.endings[static_cast<std::size_t>(i)],
                is_there ? Ending::terminated : Ending::none);
      cell = stepped.code(i);
      if (is_there) {
        EXPECT_LT(cell, 3);
        EXPECT_EQ(Stepped::number(stepped.observations, i), 0);
      }
    }
    for (const int i : {1, 3}) {
      EXPECT_EQ(stepped.endings[static_cast<std::size_t>(i)],
                step == 10 ? Ending::truncated : Ending::none);
    }
  }
  EXPECT_EQ(stepped.last_observations[5], 0);  // the cell of environment 1
  EXPECT_EQ(Stepped::number(stepped.last_observations, 1), 1);
  EXPECT_EQ(Stepped::number(stepped.observations, 1), 0);
  const EpisodeSums sums = stepped.environments.take_sums();
  EXPECT_EQ(sums.scores, std::vector<double>{sums.reward});
  EXPECT_NEAR(sums.reward, (sums.episodes - 2) * 1.1 - sums.steps * 0.1, 1e-5);
  EXPECT_EQ(stepped.environments.take_sums().episodes, 0);
}

/// All that is observed in some steps, each of two halves or of all.
std::vector<std::uint8_t> seen_in(Stepped& stepped, bool in_halves = false) {
  std::vector<std::uint8_t> seen = stepped.observations;
  const int count = stepped.environments.count();
  for (int step = 0; step < 30; ++step) {
    for (std::size_t i = 0; i < stepped.actions.size(); ++i) {
      stepped.actions[i] = (static_cast<std::size_t>(step) + i) % 3 == 0 ? 0 : 1;
    }
    if (in_halves) {
      stepped.environments.begin(0, count / 2, stepped.arrays());
      stepped.environments.wait();
      stepped.environments.begin(count / 2, count, stepped.arrays());
      stepped.environments.wait();
    } else {
      stepped.step();
    }
    seen.insert(seen.end(), stepped.observations.begin(), stepped.observations.end());
  }
  return seen;
}

TEST(ProcessEnvironmentsTest, EpisodesAreTheSameForAnyNumberOfWorkers) {
  Stepped one(example(), 5, 1);
  Stepped three(example(), 5, 3);
  Stepped many(example(), 5, 100);
  Stepped halves(example(), 5, 3);
  const std::vector<std::uint8_t> seen = seen_in(one);
  EXPECT_EQ(seen_in(three), seen);
  EXPECT_EQ(seen_in(many), seen);
  EXPECT_EQ(seen_in(halves, true), seen);
  EXPECT_EQ(many.environments.workers(), 5);
  Stepped validation(example(), 5, 1, 0, EpisodeSet::validation);
  EXPECT_NE(seen_in(validation), seen);
}

TEST(ProcessEnvironmentsTest, ARankSeesItsOwnEnvironments) {
  Stepped all(example(), 6, 2);
  Stepped second(example(), 3, 2, 3);
  const auto of_all = all.environments.state();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(second.code(i), all.code(3 + i));
  EXPECT_EQ(of_all.size(), 2 * second.environments.state().size());
}

TEST(ProcessEnvironmentsTest, ARestoredOneBeginsItsNextEpisode) {
  Stepped went_on(example(), 4, 2);
  seen_in(went_on);
  const std::vector<std::uint8_t> state = went_on.environments.state();
  Stepped first(example(), 4, 2);
  Stepped second(example(), 6, 1);
  const int untouched = second.code(5);
  for (Stepped* each : {&first, &second}) {
    EXPECT_EQ(each->environments.restore(state), GoesOn::with_new_episodes);
    each->environments.observe(each->observations);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(second.code(i), first.code(i));
    EXPECT_EQ(Stepped::number(first.observations, i), 0);
  }
  EXPECT_EQ(second.code(5), untouched);
  EXPECT_EQ(first.environments.take_sums().episodes, 0);
  EXPECT_NE(first.environments.state(), state);  // that of the episodes that have begun since
  EXPECT_THROW(first.environments.restore(second.environments.state()), std::runtime_error);
  EXPECT_THROW(first.environments.restore({1, 2, 3}), std::runtime_error);
  EXPECT_THROW(first.environments.restore(std::vector<std::uint8_t>(32, 0xff)), std::runtime_error);
  EXPECT_NO_THROW(first.step());
}

TEST(ProcessEnvironmentsTest, AllGoToTheirNextEpisodes) {
  Stepped stepped(example(), 4, 3);
  Stepped another(example(), 4, 1);
  const auto before = stepped.environments.state();
  for (Stepped* each : {&stepped, &another}) {
    each->step();
    each->environments.advance();
    each->environments.observe(each->observations);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Stepped::number(stepped.observations, i), 0);
  EXPECT_EQ(stepped.observations, another.observations);
  EXPECT_NE(stepped.environments.state(), before);
  EXPECT_EQ(stepped.environments.take_sums().episodes, 0);
  stepped.step();
  EXPECT_EQ(stepped.endings, std::vector<Ending>(4, Ending::none));
}

TEST(ProcessEnvironmentsTest, OnlyTheEpisodesThatWereAskedForAreCounted) {
  WorkerSettings settings = faulty({});
  settings.scores = {"two"};
  Stepped stepped(settings, 2, 1);
  stepped.environments.count_only(2);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(stepped.environments.counted_all(), i >= 10);
    stepped.step();
  }
  const EpisodeSums sums = stepped.environments.take_sums();
  EXPECT_EQ(sums.episodes, 4);
  EXPECT_EQ(sums.steps, 20);
  EXPECT_EQ(sums.reward, 20);
  EXPECT_EQ(sums.scores, (std::vector<double>{20, 8}));
}

TEST(ProcessEnvironmentsTest, AStartThatFailsSaysWhatToDo) {
  EXPECT_EQ(start_mistake(faulty({"has no display"})),
            "environment faulty: no display | use xvfb-run");
  EXPECT_EQ(start_mistake(faulty({"disagrees"}), 2, 2),
            "environment faulty: number 1 has another spec, package or source than number 0 | the "
            "environments of a run have to be alike");
  EXPECT_EQ(start_mistake(faulty({"answers nonsense"})),
            "environment faulty: its worker said what is no answer: \"what?\"");
  EXPECT_NE(start_mistake(faulty({"ends at once"})).find("its worker ended with exit code 5"),
            std::string::npos);
  WorkerSettings hangs = faulty({"hangs at the start"});
  hangs.start_timeout = std::chrono::seconds(1);
  EXPECT_NE(start_mistake(hangs).find("its worker has not answered in time"), std::string::npos);
  WorkerSettings missing = faulty({});
  missing.command = {"/no/such/program"};
  const std::string words = start_mistake(missing);
  EXPECT_NE(words.find("ended with exit code 127"), std::string::npos) << words;
  EXPECT_NE(words.find("/no/such/program"), std::string::npos) << words;
}

/// Both workers go wrong in their second step; the first one is looked at first.
TEST(ProcessEnvironmentsTest, AFailureNamesItsEnvironmentAndCause) {
  const std::string whose = "environment 11 (faulty, episode 0): its worker ";
  EXPECT_EQ(failure_of(faulty({"gives nan", "2"})),
            whose + "gave the reward nan, which is not finite in float32");
  EXPECT_EQ(failure_of(faulty({"gives infinity", "2"})),
            whose + "gave the reward inf, which is not finite in float32");
  EXPECT_EQ(failure_of(faulty({"observes nan", "2"})), whose + "observed nan in number");
  EXPECT_EQ(failure_of(faulty({"observes code 4", "2"})),
            whose + "observed code 4 in code, which has codes below 4");
  EXPECT_EQ(failure_of(faulty({"ends by 7", "2"})), whose + "ended an episode by 7, not 0, 1 or 2");
  EXPECT_EQ(failure_of(faulty({"cuts off at nan", "2"})), whose + "observed nan in number");
  WorkerSettings scores = faulty({"scores nan", "2"});
  scores.scores = {"two"};
  EXPECT_EQ(failure_of(scores), whose + "gave the score two as nan");
  EXPECT_EQ(failure_of(faulty({"is killed", "2"})),
            whose + "was killed by signal 9 (Killed); its last words: last\\x09words");
  EXPECT_EQ(failure_of(faulty({"ends", "2"})), whose + "ended with exit code 0");
  EXPECT_EQ(failure_of(faulty({"dies beside a child", "2"})), whose + "ended with exit code 3");
  EXPECT_EQ(failure_of(faulty({"hangs", "2"})), whose + "has not answered in time");
  EXPECT_EQ(failure_of(faulty({"closes its doorbell", "2"})), whose + "closed its doorbell");
  EXPECT_EQ(failure_of(faulty({"fails", "2"})),
            "environment 10 (faulty, episode 0): its worker failed: out of \\x1b[2J fuel");
  EXPECT_EQ(failure_of(faulty({"rings too long", "2"})),
            whose + "wrote more than is an answer to its doorbell");
  EXPECT_EQ(failure_of(faulty({"rings twice", "2"})),
            whose + "answered more often than it was rung");
  EXPECT_EQ(failure_of(faulty({"rings nonsense", "2"})),
            whose + "failed: its worker said what is no answer: \"\\u0001{]\\ufffd\"");
}

TEST(ProcessEnvironmentsTest, MemoryThatAWorkerSpoilsIsItsOwn) {
  const dtool::tests::TemporaryFolder folder;
  Stepped stepped(faulty({"writes everywhere", "1", folder.path() / "first"}), 2, 2);
  std::string words;
  try {
    stepped.step();
  } catch (const EnvironmentFailed& failure) {
    words = failure.what();
  }
  EXPECT_TRUE(words.starts_with("environment 0 ") || words.starts_with("environment 1 ")) << words;
  EXPECT_NE(words.find("gave the reward -nan"), std::string::npos) << words;
  Stepped shrinking(faulty({"shrinks the memory", "1"}), 2, 1);
  EXPECT_NO_THROW(shrinking.step());  // it cannot
}

TEST(ProcessEnvironmentsTest, WhatAWorkerPrintsHoldsUpNothing) {
  testing::internal::CaptureStderr();
  {
    Stepped stepped(faulty({"prints", "1"}), 1, 1);
    stepped.step();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr().size(), 5'000'000U);
}

TEST(ProcessEnvironmentsTest, AWorkerIsStartedAnewThreeTimes) {
  WorkerSettings settings = faulty({"is killed", "3"});
  settings.on_failure = OnFailure::restart;
  Stepped stepped(settings, 2, 1);
  testing::internal::CaptureStderr();
  for (int restarts = 0; restarts < 3; ++restarts) {
    for (int step = 0; step < 2; ++step) {
      stepped.step();
      EXPECT_EQ(stepped.endings, (std::vector<Ending>{Ending::none, Ending::none}));
    }
    const std::vector<std::uint8_t> before = stepped.observations;
    stepped.step();  // the third ring after the start
    EXPECT_EQ(stepped.endings, (std::vector<Ending>{Ending::truncated, Ending::truncated}));
    EXPECT_EQ(stepped.rewards, (std::vector<float>{0, 0}));
    EXPECT_EQ(stepped.last_observations, before);
    EXPECT_EQ(Stepped::number(stepped.observations, 0), 0);
  }
  stepped.step();
  stepped.step();
  EXPECT_THROW(stepped.step(), EnvironmentFailed);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("was killed by signal 9 (Killed)"), std::string::npos) << told;
  EXPECT_NE(told.find(": it is started anew (3 of 3)\n"), std::string::npos) << told;
  EXPECT_EQ(stepped.environments.take_sums().episodes, 0);  // none came to its end
}

TEST(ProcessEnvironmentsTest, EnvironmentsThatDidNotStepAreCutOffInTheirNextStep) {
  const dtool::tests::TemporaryFolder folder;
  WorkerSettings settings = faulty({"gives nan", "2", folder.path() / "first"});
  settings.on_failure = OnFailure::restart;
  Stepped stepped(settings, 4, 1);
  testing::internal::CaptureStderr();
  const auto half = [&](int begin) {
    stepped.environments.begin(begin, begin + 2, stepped.arrays());
    stepped.environments.wait();
    return stepped.endings[static_cast<std::size_t>(begin)];
  };
  EXPECT_EQ(half(0), Ending::none);
  EXPECT_EQ(half(2), Ending::truncated);
  EXPECT_EQ(half(0), Ending::truncated);
  EXPECT_EQ(Stepped::number(stepped.last_observations, 0), 1);
  EXPECT_EQ(half(2), Ending::none);
  EXPECT_EQ(half(0), Ending::none);
  testing::internal::GetCapturedStderr();
}

TEST(ProcessEnvironmentsTest, AWorkerThatIsStartedAnewIsNotBlamedForTheFormerOne) {
  const dtool::tests::TemporaryFolder folder;
  WorkerSettings settings = faulty({"fails after its answer", "1", folder.path() / "first"});
  settings.on_failure = OnFailure::restart;
  Stepped stepped(settings, 2, 1);
  testing::internal::CaptureStderr();
  for (int step = 0; step < 3; ++step) stepped.step();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("too late: it is started anew (1 of 3)\n"), std::string::npos) << told;
  EXPECT_EQ(told.find("(2 of 3)"), std::string::npos) << told;
}

TEST(ProcessEnvironmentsTest, NothingIsLeftOfThem) {
  const std::size_t files = open_files();
  {
    Stepped well(example(), 4, 3);
    well.step();
    EXPECT_THROW(Stepped(faulty({"ends at once"}), 2, 2), UsageError);
    EXPECT_EQ(failure_of(faulty({"dies beside a child", "1"})).substr(0, 11), "environment");
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

/// Whether nobody has the pipe's other end.
bool is_at_its_end(int pipe) {
  pollfd waited{pipe, POLLIN, 0};
  return poll(&waited, 1, 20'000) == 1 && (waited.revents & POLLHUP) != 0;
}

TEST(ProcessEnvironmentsTest, WhatTheyHaveStartedEndsWithAKilledRank) {
  std::array<int, 2> held{};
  ASSERT_EQ(pipe(held.data()), 0);  // all that are started have it
  const pid_t rank = fork();
  if (rank == 0) {
    Stepped stepped(faulty({"starts a child", "1"}), 2, 2);
    stepped.step();
    raise(SIGKILL);
  }
  close(held[1]);
  int status = 0;
  ASSERT_EQ(waitpid(rank, &status, 0), rank);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(is_at_its_end(held[0]));
  close(held[0]);
}

}  // namespace
