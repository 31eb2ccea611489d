// SPDX-License-Identifier: MIT
// What a job that has just been started has in its state folder, and when none is started.
#include "ssh/host/start_job.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/wire/run.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

class Start : public testing::Test {
 protected:
  /// A job whose own script says that it has begun.
  StartReply start() {
    request.run_id = "r";
    request.state_folder = state();
    request.log = folder.path() / "out" / "machine0.log";
    request.begin = {"begin() { : >\"$state\"/has_begun; answer started 1; }"};
    return start_job(request);
  }
  std::string state() const { return folder.path() / "run" / "machine0"; }
  void expect_refused(const std::string& why) {
    EXPECT_NE(start().error.find(why), std::string::npos) << start().error;
    EXPECT_FALSE(std::filesystem::exists(state() + "/has_begun"));
  }

  /// A program that is found before the system's.
  void program(const std::string& name, const std::string& text) const {
    const auto file = folder.write("bin/" + name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  /// A job that begins in a session. What holds it here is told to hold no programs of tests.
  StartReply start_in_session(const std::string& screen, const std::string& tmux = "exit 1\n") {
    program("screen", screen);
    program("tmux", tmux);
    const tests::TemporaryVariable path("PATH",
                                        (folder.path() / "bin").native() + ":/usr/bin:/bin");
    const tests::TemporaryVariable no_tests("GTEST_FILTER", "-*");
    request.run_id = "r";
    request.session = "the_session";
    request.state_folder = state();
    request.log = folder.path() / "out" / "machine0.log";
    return start_job(request);
  }

  const tests::TemporaryFolder folder;
  const bool is_made = std::filesystem::create_directory(folder.path() / "run");
  StartRequest request;
};

TEST_F(Start, TheLogOfAJobThatHasJustBegunCanBeAskedForByTime) {
  const StartReply reply = start();
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.started, "1");
  EXPECT_TRUE(std::filesystem::exists(request.log));
  EXPECT_EQ(log_size_then(state(), 3600), 0U);
  EXPECT_EQ(log_size_then(state(), 0), 0U);
}

TEST_F(Start, NothingBeginsWhereKillHasLeftItsMark) {
  folder.write("run/machine0/killed");
  expect_refused("dtool kill came first");
}

/// One that waited long enough for the lock.
TEST_F(Start, NothingBeginsWhereKillLeavesItsMarkMeanwhile) {
  request.files = {{"killed", {"90\n"}}};
  expect_refused("dtool kill came first");
}

TEST_F(Start, NothingBeginsWhereKillHasTakenTheRunsFolderAway) {
  std::filesystem::remove(folder.path() / "run");
  expect_refused("dtool kill came first");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST_F(Start, NothingBeginsTwice) {
  folder.write("run/machine0/process");
  expect_refused("it was started before");
}

TEST_F(Start, NothingBeginsOnAnotherHostThanTheOneThatWasLookedAt) {
  request.expected_host = identify_host() + "1";
  expect_refused("another host answers now");
  EXPECT_FALSE(std::filesystem::exists(state()));
  request.expected_host = identify_host();
  EXPECT_EQ(start().error, "");
}

TEST_F(Start, TheStateIsForItsOwnerAloneWhateverTheUmask) {
  request.files = {{"script", {"true\n"}}, {"../shared", {"x"}}};
  const mode_t before = ::umask(0);
  const StartReply reply = start();
  ::umask(before);
  EXPECT_EQ(reply.error, "");
  using std::filesystem::perms;
  const auto open_to_others = [](const std::filesystem::path& path) {
    return std::filesystem::status(path).permissions() & (perms::group_all | perms::others_all);
  };
  for (const std::string& each :
       {state(), state() + "/script", state() + "/../shared", (folder.path() / "out").string()})
    EXPECT_EQ(open_to_others(each), perms::none) << each;
}

TEST_F(Start, AFileOfAJobStaysInItsFolders) {
  for (const char* name : {"../../x", "a/b", "..", ".x", "../", ""}) {
    request.files = {{name, {"x"}}};
    expect_refused("a file of a job cannot be called");
  }
}

TEST_F(Start, TheFilesOfAJobAreInItsFolders) {
  request.files = {{"script", {"true\n"}}, {"../shared", {"x"}}};
  EXPECT_EQ(start().error, "");
  EXPECT_EQ(folder.read("run/machine0/script"), "true\n");
  EXPECT_EQ(folder.read("run/shared"), "x");
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder.path() / "run"))
    names.insert(each.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"machine0", "shared"})) << "nothing else is left";
}

TEST_F(Start, NothingBeginsWhereAFileCannotBeWritten) {
  request.files = {{"script", {"true\n"}}};
  const auto in_the_way = folder.write("run/.new_machine0");
  expect_refused("cannot make the folder " + in_the_way.native() + ": Not a directory");
  std::filesystem::remove(in_the_way);
  folder.write("run/.new_machine0/script/x");
  expect_refused("cannot write into " + state() + ": is the disk full?");
  std::filesystem::remove_all(in_the_way);
  folder.write("run/machine0/script/x");
  expect_refused("cannot write into " + state() + ": is the disk full?");
}

TEST_F(Start, NothingBeginsWhereItsFoldersCannotBeMade) {
  folder.write("run/machine0");
  expect_refused("cannot make the folder " + state() + ": Not a directory");
  std::filesystem::remove(state());
  folder.write("out");
  expect_refused("cannot make the folder of " + (folder.path() / "out/machine0.log").native());
  std::filesystem::remove(folder.path() / "out");
  std::filesystem::create_directories(state() + "/lock");
  expect_refused("cannot lock " + state() + ": Is a directory");
}

TEST_F(Start, NothingBeginsWhereItsLogCannotBeWritten) {
  folder.write("out/machine0.log/x");
  for (const bool is_fresh : {true, false}) {
    request.has_fresh_log = is_fresh;
    expect_refused("cannot write " + (folder.path() / "out/machine0.log").native());
  }
  std::filesystem::remove_all(folder.path() / "out");
  folder.write("run/machine0/log_times/x");
  expect_refused("cannot write into " + state());
  std::filesystem::remove_all(state() + "/log_times");
  std::filesystem::remove(state() + "/log");
  folder.write("run/machine0/log/x");
  expect_refused("cannot write into " + state());
}

TEST_F(Start, TheLogGoesOnOrBeginsAnew) {
  folder.write("out/machine0.log", "before\n");
  EXPECT_EQ(start().error, "");
  EXPECT_EQ(folder.read("out/machine0.log"), "before\n");
  request.has_fresh_log = true;
  EXPECT_EQ(start().error, "") << "though there is a link to a log";
  EXPECT_EQ(folder.read("out/machine0.log"), "");
  EXPECT_EQ(std::filesystem::read_symlink(state() + "/log"), request.log);
}

TEST_F(Start, NothingBeginsWhereAnotherUserCouldChangeTheOutputs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  std::filesystem::create_directory(folder.path() / "out");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  ASSERT_EQ(::lchown((folder.path() / "out").c_str(), 65534, 65534), 0);
  expect_refused("belongs to nobody, who could change the outputs there");
}

TEST_F(Start, AHomeFolderIsTheUsers) {
  const tests::TemporaryVariable home("HOME", folder.path());
  request.state_folder = "~/run/machine0";
  request.log = "~/out/log";
  request.begin = {"begin() { answer started 1; }"};
  EXPECT_EQ(start_job(request).error, "");
  EXPECT_TRUE(std::filesystem::exists(state() + "/log_times"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "out/log"));
}

/// A start whose launcher has a script of its own.
class StartByScript : public Start {
 protected:
  StartReply start_by(const std::string& script) {
    request.run_id = "r";
    request.session = "the_session";
    request.state_folder = state();
    request.log = folder.path() / "out" / "log";
    request.begin = {script};
    return start_job(request);
  }
};

TEST_F(StartByScript, IsToldWhatItIsAbout) {
  const tests::TemporaryVariable before("DTOOL_RUN_ID", "before");
  const StartReply reply = start_by(
      "begin() { answer started 17; answer job \"$run_id $session $state $log $PWD "
      "$DTOOL_RUN_ID\"; "
      "}");
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.started, "17");
  EXPECT_EQ(reply.job, "r the_session " + state() + " " + request.log + " " + state() + " r");
}

TEST_F(StartByScript, SaysWhyItFailed) {
  EXPECT_EQ(start_by("begin() { fail 'the queue is closed'; }").error, "the queue is closed");
  EXPECT_EQ(start_by("begin() { answer started 1; answer error ''; }").error,
            "the host did not say why");
  const StartReply ended = start_by("begin() { answer started 1; echo no luck >&2; exit 3; }");
  EXPECT_EQ(ended.error, "the start script ended with exit code 3: no luck");
  EXPECT_EQ(ended.started, "");
}

TEST_F(StartByScript, NeedsBash) {
  const tests::TemporaryVariable path("PATH", folder.path());
  EXPECT_EQ(start_by("begin() { :; }").error, "bash is not installed");
}

const std::string kBegins = "echo 17 4 >process\n";

TEST_F(Start, ASessionIsHeldByScreen) {
  const StartReply reply = start_in_session("echo \"$*\" >words\n" + kBegins);
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.started, "17 4");
  EXPECT_EQ(reply.job, "");
  EXPECT_EQ(folder.read("run/machine0/holder"), "screen\n");
  EXPECT_EQ(folder.read("out/machine0.log"), "");
  const std::string words = folder.read("run/machine0/words");
  EXPECT_TRUE(words.starts_with("-dmS the_session ")) << words;
  EXPECT_TRUE(words.ends_with(" session " + request.log + "\n")) << words;
}

TEST_F(Start, AScriptMayLeaveTheBeginningToASession) {
  request.begin = {"begin() { answer job 5; }"};
  const StartReply reply = start_in_session(kBegins);
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.started, "17 4");
  EXPECT_EQ(reply.job, "5");
}

TEST_F(Start, WhereScreenDoesNotStartTmuxHoldsTheSession) {
  EXPECT_EQ(start_in_session("echo no luck; exit 1\n", kBegins).started, "17 4");
  EXPECT_EQ(folder.read("run/machine0/holder"), "tmux\n");
  EXPECT_EQ(folder.read("out/machine0.log"), "dtool: screen did not start: no luck\n");
}

TEST_F(Start, WhereNeitherStartsNothingHoldsTheSession) {
  EXPECT_EQ(start_in_session("exit 1\n", kBegins + "exit 1\n").started, "17 4");
  EXPECT_EQ(folder.read("run/machine0/holder"), "none\n");
}

TEST_F(Start, NothingBeginsWhereItsHolderCannotBeNoted) {
  folder.write("run/machine0/holder/x");
  EXPECT_EQ(start_in_session(kBegins).error,
            "cannot write into " + state() + ": is the disk full?");
  EXPECT_FALSE(std::filesystem::exists(state() + "/process"));
}

TEST_F(Start, ToldOfTheBeginningItSaysWhyThereIsNone) {
  const std::string failing = kBegins + "echo there is no such program >fault\n";
  EXPECT_EQ(start_in_session(failing).started, "17 4") << "nobody asked";
  std::filesystem::remove_all(state());
  request.is_told = true;
  const StartReply reply = start_in_session(failing);
  EXPECT_EQ(reply.error, "there is no such program");
  EXPECT_EQ(reply.started, "");
  for (const char* sign : {"begun", "exit_code"}) {
    std::filesystem::remove_all(state());
    EXPECT_EQ(start_in_session(kBegins + ": >" + sign + "\n").started, "17 4") << sign;
  }
}

}  // namespace
}  // namespace dtool::host
