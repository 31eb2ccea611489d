// SPDX-License-Identifier: MIT
// The cause of a failed attempt of a scheduler's job, by the files of its processes.
#include "cli/run/host/job_cause.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

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

  Told told() const {
    testing::internal::CaptureStdout();
    const int code = tell_job_cause({run_.path(), "0", "0", "2"});
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

}  // namespace
}  // namespace dtool::host
