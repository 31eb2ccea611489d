// SPDX-License-Identifier: MIT
// Many hosts at once, each of them this machine: the order in which they do what they are asked.
#include "ssh/fanout/fleet.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ssh/machine/interrupts.h"
#include "ssh/quote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using namespace std::chrono_literals;

/// Has hosts go on with what the test wrote down, and remembers what it was told.
struct Steps : Events {
  std::optional<NextTask> next_task(std::size_t host, const HostResult& result) override {
    seen[host].push_back(result.out);
    std::vector<NextTask>& left = next[host];
    if (left.empty()) return std::nullopt;
    NextTask first = left.front();
    left.erase(left.begin());
    return first;
  }
  void on_result(std::size_t host, const HostResult& result) override {
    answers[host].push_back(result.out);
  }

  std::map<std::size_t, std::vector<NextTask>> next;
  std::map<std::size_t, std::vector<std::string>> seen;
  std::map<std::size_t, std::vector<std::string>> answers;
};

std::unique_ptr<Remote> here(std::size_t count) {
  return make_fleet(std::vector<Host>(count, parse_host("local")), {});
}

NextTask next(std::size_t host, const std::string& line) {
  return {Task{host, Command{line}}};
}

/// What interrupts one test is not to end the next one.
struct InterruptedFleet : testing::Test {
  ~InterruptedFleet() override { forget_interrupts(); }
};

TEST(Fleet, AHostsAnswerIsThatOfItsLastTask) {
  Steps steps;
  steps.next[0] = {next(0, "printf two"), next(0, "printf three; exit 3")};
  const auto results = here(1)->run({{0, Command{"printf one"}}}, steps, {});
  EXPECT_EQ(steps.seen[0], (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(steps.answers[0], (std::vector<std::string>{"three"}));
  EXPECT_EQ(results.at(0).out, "three");
  EXPECT_EQ(results[0].exit_code, 3);
}

TEST(Fleet, AHostGoesOnWhileAnotherIsAtItsFirstTask) {
  const tests::TemporaryFolder folder;
  const std::string fifo = quote((folder.path() / "fifo").native());
  ASSERT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);
  Steps steps;
  steps.next[1] = {next(1, "echo from the second task > " + fifo)};
  const auto results =
      here(2)->run({{0, Command{"cat " + fifo}}, {1, Command{"true"}}}, steps, RunOptions{{20s}});
  EXPECT_EQ(results.at(0).out, "from the second task\n") << results[0].error;
}

/// Its first host has nothing further to do before the second one is through.
struct FirstWaits : Steps {
  std::optional<NextTask> next_task(std::size_t host, const HostResult& result) override {
    if (host != 0 || !seen[0].empty()) return Steps::next_task(host, result);
    if (answers[1].empty()) return NextTask{std::nullopt, 5ms};
    return Steps::next_task(host, result);
  }
};

TEST(Fleet, AHostMayWaitForAnother) {
  FirstWaits steps;
  steps.next[0] = {next(0, "printf second")};
  steps.next[1] = {next(1, "printf third")};
  const auto results = here(2)->run({{0, Command{"printf first"}}, {1, Command{"printf second"}}},
                                    steps, RunOptions{{20s}});
  EXPECT_EQ(steps.seen[0], (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(results.at(0).out, "second");
}

TEST_F(InterruptedFleet, AnInterruptEndsAWait) {
  FirstWaits steps;
  const auto remote = here(2);
  const auto results = remote->run(
      {{0, Command{"true"}}, {1, Command{"kill -INT $PPID; sleep 0.2; exec sleep 1"}}}, steps, {});
  EXPECT_EQ(results.at(0).failure, Failure::not_started);
}

TEST(Fleet, ATasksOwnOptionsGoBeforeThoseOfTheRun) {
  Steps steps;
  steps.next[0] = {
      {Task{0, Command{"printf dropped; sleep 20"}, TaskOptions{100ms, KeepOutput::no}}}};
  const auto results = here(1)->run({{0, Command{"printf kept"}}}, steps, RunOptions{{60s}});
  EXPECT_EQ(steps.seen[0].front(), "kept");
  EXPECT_EQ(results.at(0).out, "");
  EXPECT_EQ(results[0].failure, Failure::timed_out);
}

TEST(Fleet, AHostThatFailsEndsTheOthersWhereThatIsWanted) {
  const tests::TemporaryFolder folder;
  const std::string fifo = quote((folder.path() / "fifo").native());
  ASSERT_EQ(std::system(("mkfifo " + fifo).c_str()), 0);
  Events events;
  RunOptions options;
  options.on_failure = OnFailure::end_others;
  const auto fleet = make_fleet(std::vector<Host>(4, parse_host("local")), {.width = 3});
  const auto results = fleet->run({{0, Command{"trap '' TERM; echo > " + fifo + "; exec sleep 60"}},
                                   {1, Command{"true"}},
                                   {2, Command{"cat " + fifo + "; exit 3"}},
                                   {3, Command{"sleep 60"}}},
                                  events, options);
  EXPECT_EQ(results.at(2).exit_code, 3);
  EXPECT_TRUE(results.at(1).ok());
  for (const std::size_t host : {0U, 3U}) {
    EXPECT_EQ(results.at(host).failure, Failure::ended);
    EXPECT_EQ(results[host].error, "ended because local failed");
    EXPECT_TRUE(results[host].was_ended);
  }
}

TEST_F(InterruptedFleet, AfterAnInterruptAFurtherTaskIsNotStarted) {
  Steps steps;
  steps.next[0] = std::vector<NextTask>(3, next(0, "printf never"));
  const auto remote = here(1);
  const auto results = remote->run({{0, Command{"kill -INT $PPID; sleep 1"}}}, steps, {});
  EXPECT_EQ(results.at(0).failure, Failure::not_started);
  EXPECT_EQ(steps.seen[0].size(), 2U) << "asked after the task, and after the refusal";
  EXPECT_TRUE(remote->interrupted());
}

struct FailsAtAnInterrupt : Events {
  void on_interrupt(const std::vector<std::size_t>&) override {
    throw std::runtime_error("nobody reads this");
  }
};

TEST_F(InterruptedFleet, WhatFailsAtAnInterruptEndsTheRun) {
  FailsAtAnInterrupt events;
  const auto remote = here(2);
  const std::vector<Task> tasks = {{0, Command{"sleep 20"}}, {1, Command{"kill -INT $PPID"}}};
  EXPECT_THROW(remote->run(tasks, events, {}), std::runtime_error);
}

/// Leaves the second host no descriptor.
struct TakesAllDescriptors : Events {
  TakesAllDescriptors() { ::getrlimit(RLIMIT_NOFILE, &before); }
  ~TakesAllDescriptors() override { ::setrlimit(RLIMIT_NOFILE, &before); }
  void on_result(std::size_t, const HostResult&) override {
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  rlimit before{};
};

TEST(Fleet, AShortageHereIsTheFailureOfTheHostThatMetIt) {
  const auto remote = make_fleet(std::vector<Host>(2, parse_host("local")), {.width = 1});
  TakesAllDescriptors events;
  const auto results = remote->run({{0, Command{"true"}}, {1, Command{"true"}}}, events, {});
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(1).failure, Failure::local_program);
  EXPECT_EQ(results[1].error, "cannot make a pipe: Too many open files");
}

TEST(Trust, AHostWhoseSettingsCannotBeReadCostsNoOtherAnswer) {
  const tests::TemporaryFolder folder;
  ConnectOptions options;
  options.config_file = folder.write(
      "config", "Host bad\nProxyJump gate:%n\nHost good\nHostName 127.0.0.1\nPort 1\n");
  options.tries = 1;
  const auto keys = scan_host_keys({parse_host("bad"), parse_host("good")}, options);
  EXPECT_NE(keys.at(0).error.find("gate:bad"), std::string::npos) << keys[0].error;
  EXPECT_EQ(keys.at(1).error, "cannot connect to port 1: Connection refused");
}

}  // namespace
}  // namespace dtool::ssh
