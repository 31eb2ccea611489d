// SPDX-License-Identifier: MIT
// The cause of a failed attempt of a scheduler's job, by the files of its processes.
#include "ssh/host/session/last_words.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

struct Told {
  std::string text;
  int code;

  bool operator==(const Told&) const = default;
};

class JobCause : public testing::Test {
 protected:
  /// A process's record; later ones were written later.
  void record(int machine, int rank, const std::string& line, const std::string& words = "") {
    const std::string state = "machine" + std::to_string(machine);
    const auto file = run_.write(state + "/ranks/" + std::to_string(rank), line);
    std::filesystem::last_write_time(file, time_ += std::chrono::seconds(1));
    if (!words.empty()) run_.write(state + "/last_words.0." + std::to_string(rank), words);
  }

  Told told(const std::string& first = "0", const std::string& count = "2") const {
    testing::internal::CaptureStdout();
    const int code = tell_job_cause({run_.path(), "0", first, count});
    return {testing::internal::GetCapturedStdout(), code};
  }

  tests::TemporaryFolder run_;

 private:
  std::filesystem::file_time_type time_ = std::filesystem::file_time_type::clock::now();
};

TEST_F(JobCause, IsTheRankThatFailedFirstWithTheLastLineOfItsMachinesLog) {
  run_.write("machine1/node", "h3\n");
  run_.write("machine1/log", "sick\n");
  record(0, 0, "143 told\n");
  record(1, 3, "7 \n");
  record(1, 2, "1 \n");
  EXPECT_EQ(told(), (Told{"rank 3 on machine 1 (h3) ended with exit code 7: sick\n", 0}));
  for (const char* machine : {"machine0", "machine1"})
    EXPECT_EQ(run_.read(std::string(machine) + "/cause_place"), "1 3\n");
}

TEST_F(JobCause, IsTheRankThatWasKilledAndNotTheOneThatLostIt) {
  record(0, 0, "3 told\n", "rank 0 on machine 0: rank 1 closed its connection\n");
  record(0, 2, "1 \n");
  record(1, 1, "137 \n");
  EXPECT_EQ(told(), (Told{"rank 1 on machine 1 was killed by signal 9 (KILL)\n", 0}));
}

TEST_F(JobCause, IsTheLossOfARankIfNothingElseIsKnown) {
  record(0, 0, "3 told\n", "rank 0 on machine 0: rank 1 closed its connection\n");
  record(1, 1, "143 told\n");
  EXPECT_EQ(told(), (Told{"rank 0 on machine 0: rank 1 closed its connection\n", 0}));
}

TEST_F(JobCause, TellsMistakesApartSinceAnotherAttemptWouldMakeThemAgain) {
  record(1, 1, "2 \n", "no such file\nhint: make it\n");
  EXPECT_EQ(told(), (Told{"rank 1 on machine 1 ended with exit code 2: no such file (hint: make "
                          "it)\n",
                          3}));
}

TEST_F(JobCause, IsTheRankThatTorchrunNames) {
  run_.write("machine1/first_failure", "5\n");
  record(1, 1, "9 \n");
  EXPECT_EQ(told(), (Told{"rank 5 on machine 1 ended with exit code 9\n", 0}));
}

TEST_F(JobCause, IsEmptyIfNoProcessFailedByItself) {
  record(0, 0, "143 told\n");
  record(1, 1, "0 \n");
  EXPECT_EQ(told(), (Told{"", 0}));
}

TEST_F(JobCause, IsLookedForOnTheJobsOwnMachines) {
  for (const int machine : {2, 0, 1}) record(machine, machine, "7 \n");
  EXPECT_EQ(told("1", "1"), (Told{"rank 1 on machine 1 ended with exit code 7\n", 0}));
  EXPECT_EQ(run_.read("machine1/cause_place"), "1 1\n");
  for (const char* machine : {"machine0", "machine2"})
    EXPECT_EQ(run_.read(std::string(machine) + "/cause_place"), "");
}

TEST_F(JobCause, IsNoFileThatIsNoProcesssRecord) {
  record(0, 0, "\n");
  record(0, 1, "x \n");
  run_.write("machine1/ranks/new", "7 \n");
  EXPECT_EQ(told(), (Told{"", 0}));
}

TEST_F(JobCause, IsToldInAThousandCharacters) {
  record(1, 1, "1 \n", std::string(1500, 'x'));
  EXPECT_EQ(told().text.size(), 1001U);
}

TEST_F(JobCause, IsRefusedWithoutItsWords) {
  for (const std::size_t count : {3U, 5U})
    EXPECT_THROW(tell_job_cause(std::vector<std::string>(count, "1")), std::runtime_error);
}

}  // namespace
}  // namespace dtool::host
