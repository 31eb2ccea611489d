// SPDX-License-Identifier: MIT
// What a host tells of a run that failed: whose last lines, and which of them explains it.
#include "ssh/host/answers/answers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ssh/wire/run.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

/// Machine 1 with the ranks 2 and 3, where rank 3 has failed.
class FailedMachine : public testing::Test {
 protected:
  FailedMachine() {
    write("exit_code", "1\n");
    write("log_ranks", "marked 2\nmarked 3\n");
    folder_.write("machine1.log", "r3: ValueError: sick\nr2: closed by peer\nr3: =====\n");
    std::filesystem::create_symlink(folder_.path() / "machine1.log",
                                    folder_.path() / "machine1/log");
  }
  void write(const std::string& name, const std::string& text) {
    folder_.write("machine1/" + name, text);
  }
  StatusAnswer told() const {
    const std::string state = folder_.path() / "machine1";
    StatusRequest request;
    request.machines.push_back({"no_run", state, state + "/log", ""});
    return tell_status(request).machines.at(0);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> texts;
    for (const Hidden& each : told().lines) texts.push_back(each.text);
    return texts;
  }

  tests::TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;

TEST_F(FailedMachine, ShowsTheLinesOfTheRankThatTheCauseNames) {
  write("cause_place", "1 3\n");
  EXPECT_EQ(lines(), (Lines{"ValueError: sick", "====="}));
  write("stopped", "");
  EXPECT_EQ(lines(), (Lines{"ValueError: sick", "====="})) << "it was stopped by a signal";
  folder_.write("machine1.ranks/r3.log", "its own\n");
  EXPECT_EQ(lines(), Lines{"its own"});
  write("cause_place", "0 1\n");
  EXPECT_EQ(lines(), Lines{}) << "another machine has it";
}

TEST_F(FailedMachine, ShowsItsOwnLinesWhereNothingIsKnown) {
  EXPECT_EQ(lines(), (Lines{"r3: ValueError: sick", "r2: closed by peer", "r3: ====="}));
  write("first_failure", "3\n");
  EXPECT_EQ(lines(), (Lines{"ValueError: sick", "====="}));
}

TEST_F(FailedMachine, PassesOverLinesThatExplainNothing) {
  EXPECT_EQ(told().last_line.text, "closed by peer");
  write("exit_code", "0\n");
  EXPECT_EQ(told().last_line.text, "=====");
}

TEST_F(FailedMachine, TellsWhatItsEnvironmentsWereMadeOf) {
  folder_.write("outputs/environment.json", "{\"package\": \"walks 1.0\"}\n");
  const auto simulator = [&](const std::string& outputs) {
    StatusRequest request;
    request.machines.push_back({"no_run", folder_.path() / "machine1", "", outputs});
    return tell_status(request).machines.at(0).simulator.text;
  };
  EXPECT_EQ(simulator(folder_.path() / "outputs"), "") << "nothing was trained";
  folder_.write("outputs/metrics.jsonl", "{\"event\": \"start\"}\n");
  EXPECT_EQ(simulator(folder_.path() / "outputs"), "{\"package\": \"walks 1.0\"}\n");
  EXPECT_EQ(simulator(""), "");
}

}  // namespace
}  // namespace dtool::host
