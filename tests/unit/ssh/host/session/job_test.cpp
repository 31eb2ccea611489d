// SPDX-License-Identifier: MIT
// The files of a job as its session writes and reads them.
#include "ssh/host/session/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/members.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

class JobTest : public testing::Test {
 protected:
  JobTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~JobTest() override { std::filesystem::current_path(before_); }

  std::filesystem::path before_;
  tests::TemporaryFolder folder_;
};

TEST_F(JobTest, ItsLeaderIsFoundByItsFile) {
  begin_job();
  const auto leader = read_job_files(".").leader;
  ASSERT_TRUE(leader);
  EXPECT_EQ(leader->pid, ::getpid());
  EXPECT_EQ(leader->start, find_process(::getpid())->start);
  EXPECT_FALSE(std::filesystem::exists("exit_code"));
}

TEST_F(JobTest, TheFirstEndCountsAndTakesNoNewRoom) {
  begin_job();
  const auto size = std::filesystem::file_size("exit_code.new");
  record_end(7);
  record_end(0);
  EXPECT_EQ(folder_.read("exit_code").substr(0, 2), "7\n");
  EXPECT_EQ(std::filesystem::file_size("exit_code"), size);
  EXPECT_FALSE(std::filesystem::exists("exit_code.new"));
}

TEST_F(JobTest, AScriptsOutputAndEndAreKept) {
  folder_.write("script", "echo $1; echo err >&2; kill -KILL $$\n");
  const pid_t script = start_program({"bash", "./script", "a b"}, "log", Input::nothing);
  EXPECT_EQ(wait_for_child(script, 10s), 137);
  EXPECT_EQ(folder_.read("log"), "a b\nerr\n");
  EXPECT_EQ(wait_for_child(start_program({"./missing"}, "log", Input::nothing)), 127);
}

TEST_F(JobTest, AScriptHearsSignalsThatItsSessionDoesNot) {
  const auto before = ::signal(SIGINT, SIG_IGN);
  folder_.write("script", "exec grep -E '^Sig(Blk|Ign)' /proc/self/status\n");
  sigset_t blocked;
  sigset_t old;
  ::sigemptyset(&blocked);
  for (const int each : {SIGCHLD, SIGUSR1}) ::sigaddset(&blocked, each);  // bash frees CHLD itself
  ::sigprocmask(SIG_BLOCK, &blocked, &old);
  wait_for_child(start_program({"bash", "./script"}, "log", Input::nothing));
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  ::signal(SIGINT, before);
  const std::string log = folder_.read("log");
  EXPECT_NE(log.find("SigBlk:\t0000000000000000\n"), log.npos) << log;
  // HUP, INT, QUIT and PIPE are bits 1, 2, 3 and 13.
  const auto ignored = std::stoull(log.substr(log.find("SigIgn:") + 7), nullptr, 16);
  EXPECT_EQ(ignored & 0x1007U, 0U) << log;
}

TEST_F(JobTest, IsNotBegunWhereItsEndCouldNotBeRecorded) {
  std::filesystem::create_directory("exit_code.new");
  try {
    begin_job();
    ADD_FAILURE() << "it began";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot write exit_code.new: Is a directory");
  }
  EXPECT_FALSE(std::filesystem::exists("process"));
}

TEST_F(JobTest, ItsFilesMayBeReadByWhomTheUserLets) {
  const mode_t before = ::umask(022);
  begin_job();
  wait_for_child(start_program({"true"}, "log", Input::nothing));
  ::umask(before);
  for (const char* file : {"exit_code.new", "log"})
    EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0644)) << file;
}

TEST_F(JobTest, AProgramHasNoInputOrItsSessions) {
  const Descriptor before(::dup(STDIN_FILENO));
  const Descriptor input(::open(folder_.write("input").c_str(), O_RDONLY | O_CLOEXEC));
  ::dup2(input.get(), STDIN_FILENO);
  for (const Input each : {Input::nothing, Input::inherited})
    wait_for_child(start_program({"readlink", "/proc/self/fd/0"}, "log", each));
  ::dup2(before.get(), STDIN_FILENO);
  EXPECT_EQ(folder_.read("log"), "/dev/null\n" + folder_.path().string() + "/input\n");
}

TEST_F(JobTest, WithoutALogAProgramsOutputIsItsSessions) {
  testing::internal::CaptureStdout();
  const int code = wait_for_child(start_program({"echo", "said"}, "", Input::nothing));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "said\n");
  EXPECT_EQ(code, 0);
}

TEST_F(JobTest, NothingRunsWhoseLogCannotBeWritten) {
  EXPECT_EQ(wait_for_child(start_program({"true"}, "no/such/log", Input::nothing)), 1);
}

TEST_F(JobTest, WhatIsNoChildIsNotWaitedFor) {
  EXPECT_EQ(wait_for_child(::getppid(), 10s), kCannotRun);
  EXPECT_EQ(wait_for_child(::getppid()), kCannotRun);
}

TEST_F(JobTest, WaitsNoLongerThanItIsTold) {
  const pid_t sleep = start_program({"sleep", "60"}, "log", Input::nothing);
  EXPECT_EQ(wait_for_child(sleep, 0s), std::nullopt);
  ::kill(sleep, SIGKILL);
  EXPECT_EQ(wait_for_child(sleep), 137);
}

TEST_F(JobTest, KillsMarkSaysHowLongItMayTake) {
  EXPECT_EQ(find_kill_mark(), std::nullopt);
  folder_.write("killed", "95\n");
  EXPECT_EQ(find_kill_mark(), 95s);
  folder_.write("killed", "a[0]\n");
  EXPECT_EQ(find_kill_mark(), 600s);
}

TEST_F(JobTest, SaysInTheLog) {
  say_in_log("log", "attempt 2 of 2 begins");
  EXPECT_EQ(folder_.read("log"), "dtool: attempt 2 of 2 begins\n");
}

TEST(LastLine, IsTheProgramsOwn) {
  EXPECT_EQ(find_last_line(""), "");
  EXPECT_EQ(find_last_line("one\ntwo\n\n  \n"), "two");
  EXPECT_EQ(find_last_line("one\nwithout an end"), "without an end");
  EXPECT_EQ(find_last_line("sick\ndtool: rank 1 on machine 1 ended with exit code 7; the others\n"
                           "dtool: the run failed: sick\nmpirun: told\n"),
            "sick");
  EXPECT_EQ(find_last_line("a b~\x7f\n"), "a b~");
  EXPECT_EQ(find_last_line(std::string_view("b\0c\n", 4)), "b c");
  EXPECT_EQ(find_last_line("10 %\r20 %\rcaf\xc3\xa9\ta\x1b[2Jb\0c\n"), "caf a[2Jb");
}

TEST(LastLine, IsOfTheNewestAttempt) {
  EXPECT_EQ(find_last_line("sick\ndtool: attempt 2 of 3 begins\n"), "");
  EXPECT_EQ(find_last_line("sick\ndtool: attempt 2 of 3 begins\nwell\n"), "well");
  EXPECT_EQ(find_last_line("sick\ndtool: attempt 1 of 3 failed: sick\n"), "sick");
}

TEST_F(JobTest, ARanksLastLineIsItsOwnWhereTheMachineHasSeveral) {
  folder_.write("out/machine0.log", "dtool: attempt 1 begins\nr3: mine\nr4: other\n");
  std::filesystem::create_symlink(folder_.path() / "out/machine0.log", "log");
  EXPECT_EQ(last_line_of_rank(".", 0, "3"), "r4: other")
      << "no rank is noted: the log has no marks";
  folder_.write("log_ranks", "marked 3\nmarked 4\n");
  EXPECT_EQ(last_line_of_rank(".", 0, "mpirun"), "other");
  folder_.write("out/machine0.ranks/r3.log", "r9: mine\nhalf");
  folder_.write("out/machine0.ranks/r3.attempt2.log", "");
  EXPECT_EQ(last_line_of_rank(".", 0, "3"), "half");
  EXPECT_EQ(last_line_of_rank(".", 1, "3"), "") << "an earlier attempt's line is no reason";
}

TEST_F(JobTest, TorchrunsWordIsCorrectedIfItNamesAVictim) {
  std::filesystem::create_symlink(folder_.path() / "out/machine0.log", "log");
  folder_.write("first_failure", "2\n");
  folder_.write("out/machine0.ranks/r1.log", "step 7\n");
  folder_.write("out/machine0.ranks/r2.log", "RuntimeError: Connection closed by peer\n");
  folder_.write("out/machine0.ranks/r3.log", "ValueError: sick\n");
  EXPECT_EQ(read_first_failure(".", 0), "2") << "it was not torchrun";
  folder_.write("torchrun_rank", "");
  EXPECT_EQ(read_first_failure(".", 1), "2") << "the logs are of another attempt";
  EXPECT_EQ(read_first_failure(".", 0), "3");
  EXPECT_EQ(folder_.read("first_failure"), "3\n");
  folder_.write("out/machine0.log", "RuntimeError: Connection closed by peer\n");
  folder_.write("first_failure", "mpirun\n");
  EXPECT_EQ(read_first_failure(".", 0), "mpirun");
  folder_.write("first_failure", "dtool's own process for rank 2\n");
  EXPECT_EQ(read_first_failure(".", 0), "dtool's own process for rank 2");
}

TEST_F(JobTest, TorchrunsWordStaysWithoutABetterOneOfTheSameAttempt) {
  folder_.write("out/machine0.log", "ValueError: sick\n");
  std::filesystem::create_symlink(folder_.path() / "out/machine0.log", "log");
  folder_.write("torchrun_rank", "");
  folder_.write("first_failure", "2\n");
  folder_.write("out/machine0.ranks/r1.attempt2.log", "step 7\n");
  for (const char* victim : {"2", "4"})
    folder_.write("out/machine0.ranks/r" + std::string(victim) + ".attempt2.log",
                  "RuntimeError: Connection closed by peer\n");
  folder_.write("out/machine0.ranks/r3.log", "ValueError: sick\n");
  EXPECT_EQ(read_first_failure(".", 1), "2");
  EXPECT_EQ(folder_.read("first_failure"), "2\n");
  folder_.write("out/machine0.ranks/r3.attempt2.log", "ValueError: sick\n");
  folder_.write("out/machine0.ranks/r2.attempt2.log", "KeyError: sick, too\n");
  EXPECT_EQ(read_first_failure(".", 1), "2") << "it has failed by itself";
}

}  // namespace
}  // namespace dtool::host
