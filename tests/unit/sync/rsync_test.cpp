// SPDX-License-Identifier: MIT
#include "sync/rsync.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtool::tree_sync {
namespace {

using namespace std::string_literals;

Tree tree_of(std::vector<std::string> files) {
  Tree tree;
  tree.root = "/home/ann/my code";
  tree.files = std::move(files);
  return tree;
}

const FolderLock kLock = {"/home/ann/.dtool/trees/it's.lock", "0123"};

bool has(const ssh::LocalProgram& program, const std::string& word) {
  return std::ranges::find(program.arguments, word) != program.arguments.end();
}

TEST(Rsync, SendsTheListedFilesOverDtoolsConnection) {
  const auto program =
      push_program(tree_of({"a", "b/c"}), "~/code", Link::network, kLock, Same::size_and_time);
  EXPECT_EQ(program.arguments.front(), "rsync");
  EXPECT_TRUE(has(program, std::string(ssh::kRemoteShell)));
  EXPECT_EQ(program.arguments[program.arguments.size() - 2], "/home/ann/my code/");
  EXPECT_EQ(program.arguments.back(), "dtool:.");
  EXPECT_EQ(program.input, "/a\0/b/c\0"s);
}

TEST(Rsync, ANameThatLooksLikeACommentOrAnOptionIsAName) {
  EXPECT_EQ(
      push_program(tree_of({"#a", "-rf", ";b"}), "/c", Link::network, kLock, Same::size_and_time)
          .input,
      "/#a\0/-rf\0/;b\0"s);
}

TEST(Rsync, TheFolderAndItsLockAreQuotedForTheLoginShell) {
  const auto program =
      push_program(tree_of({"a"}), "~/it's $HOME", Link::network, kLock, Same::size_and_time);
  const auto remote = std::ranges::find_if(
      program.arguments, [](const std::string& word) { return word.starts_with("--rsync-path="); });
  ASSERT_NE(remote, program.arguments.end());
  EXPECT_TRUE(
      remote->starts_with("--rsync-path=cd \"$HOME\"/'it'\\''s $HOME' && exec bash --norc -c '"));
  EXPECT_TRUE(remote->ends_with(" '/home/ann/.dtool/trees/it'\\''s.lock' 0123")) << *remote;
}

TEST(Rsync, OnlyANetworkIsWorthCompressing) {
  EXPECT_TRUE(
      has(push_program(tree_of({"a"}), "/c", Link::network, kLock, Same::size_and_time), "-z"));
  EXPECT_FALSE(
      has(push_program(tree_of({"a"}), "/c", Link::local, kLock, Same::size_and_time), "-z"));
}

TEST(Rsync, TheFiguresAtTheEndAreRead) {
  const Sent sent = read_sent(
      "\r   8 100%\n\nNumber of files: 6 (reg: 4, dir: 2)\n"
      "Number of regular files transferred: 4\nTotal file size: 8 bytes\n"
      "Total transferred file size: 5800123 bytes\nLiteral data: 8 bytes\n");
  EXPECT_EQ(sent.files, 4U);
  EXPECT_EQ(sent.bytes, 5'800'123U);
  EXPECT_EQ(read_sent("rsync error").files, 0U);
}

TEST(Rsync, ProgressIsReadFromPiecesCutAnywhere) {
  const std::string output =
      "\r              2  25%    0.00kB/s    0:00:00 (xfr#1, to-chk=4/6)"
      "\r          32768  50%    1.95kB/s    0:00:00 (xfr#2, to-chk=3/6)";
  for (std::size_t size = 1; size < output.size(); ++size) {
    ProgressReader reader;
    std::uint64_t bytes = 0;
    for (std::size_t at = 0; at < output.size(); at += size) {
      const std::uint64_t now = reader.add(output.substr(at, size)).sent.bytes;
      EXPECT_GE(now, bytes);
      bytes = now;
    }
    EXPECT_EQ(bytes, 32768U) << "pieces of " << size;
  }
}

TEST(Rsync, ProgressIsAFractionWhateverIsSaid) {
  for (const char* said :
       {"\r 9 4% 1kB/s 0:00:00 (xfr#1, to-chk=-1/9)", "\r 9% (xfr#1, to-chk=-1e300/1e-300)",
        "\r 9% (xfr#1, to-chk=nan/9)", "\r 99999%"}) {
    const double fraction = ProgressReader().add(said).fraction;
    EXPECT_TRUE(fraction >= 0 && fraction <= 1) << said << " " << fraction;
  }
}

ssh::HostResult rsync_failed(int exit_code, const std::string& err) {
  ssh::HostResult result;
  result.exit_code = exit_code;
  result.err = err;
  explain(result);
  return result;
}

TEST(Rsync, AFullDiskIsNamedAndNotWhatFollowsFromIt) {
  const auto result =
      rsync_failed(11,
                   "rsync: [receiver] write failed on \"/d/a\": No space left on device (28)\n"
                   "rsync error: error in file IO (code 11) at receiver.c(380) [receiver=3.2.7]\n"
                   "rsync: connection unexpectedly closed (28 bytes received so far) [sender]\n"
                   "rsync: [sender] write error: Broken pipe (32)\n");
  EXPECT_EQ(result.error,
            "rsync failed with exit code 11: [receiver] write failed on \"/d/a\": No space left on "
            "device (28)");
  EXPECT_EQ(
      result.hint,
      "free some space there; if df -h shows enough, df -i shows that its inodes are used up");
}

TEST(Rsync, AnRsyncThatPrintsSomethingElseIsExplained) {
  const auto result = rsync_failed(
      2,
      "protocol version mismatch -- is your shell clean?\n"
      "(see the rsync manpage for an explanation)\n"
      "rsync error: protocol incompatibility (code 2) at compat.c(622) [sender=3.2.7]\n");
  EXPECT_NE(result.error.find("is your shell clean?"), std::string::npos) << result.error;
  EXPECT_NE(result.hint.find("type rsync"), std::string::npos) << result.hint;
}

TEST(Rsync, AMissingRsyncHasItsHint) {
  const auto result =
      rsync_failed(127,
                   "bash: line 1: exec: rsync: not found\n"
                   "rsync: connection unexpectedly closed (0 bytes received so far) "
                   "[sender]\nrsync error: remote command not found (code 127)\n");
  EXPECT_NE(result.error.find("exec: rsync: not found"), std::string::npos) << result.error;
  EXPECT_EQ(result.hint, "apt-get install rsync");
}

TEST(Rsync, AFolderInTheWayIsExplained) {
  const auto result = rsync_failed(
      23,
      "could not make way for new regular file: d/x\n"
      "rsync error: some files/attrs were not transferred (see previous errors) (code 23)\n");
  EXPECT_NE(result.error.find("could not make way for new regular file: d/x"), std::string::npos);
  EXPECT_NE(result.hint.find("did not send"), std::string::npos);
}

TEST(Rsync, WithoutWordsTheExitCodeIsNamed) {
  EXPECT_EQ(rsync_failed(20, "").error, "rsync failed with exit code 20");
}

TEST(Rsync, SuccessAndAHostsOwnFailureStayAsTheyAre) {
  EXPECT_EQ(rsync_failed(0, "rsync: something").error, "");
  ssh::HostResult lost;
  lost.failure = ssh::Failure::connection_lost;
  lost.error = "the connection was lost";
  explain(lost);
  EXPECT_EQ(lost.error, "the connection was lost");
}

TEST(Rsync, WithoutRsyncOnThisMachineTheHintSaysHowToGetIt) {
  ssh::HostResult result;
  result.failure = ssh::Failure::local_program;
  explain(result);
  EXPECT_EQ(result.hint, "apt-get install rsync");
}

}  // namespace
}  // namespace dtool::tree_sync
