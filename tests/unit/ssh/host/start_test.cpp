// SPDX-License-Identifier: MIT
// What a job that has just been started has in its state folder, and when none is started.
#include "ssh/host/start.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "ssh/host/identity.h"
#include "ssh/host/log_times.h"
#include "ssh/host/messages/run.h"
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

}  // namespace
}  // namespace dtool::host
