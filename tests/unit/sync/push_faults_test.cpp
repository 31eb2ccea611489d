// SPDX-License-Identifier: MIT
// A push to this machine that is broken off, or overtaken by another, or finds programs missing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/sync/local_push.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST_F(LocalPushTest, APackageNeedsNoRsync) {
  way_ = Way::package;
  put_in_path("rsync", "exit 1\n");
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 2U);
  scratch_.write("tree/a", "changed");
  fs::remove(scratch_.path() / "tree/b");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 1U) << "only what differs";
  EXPECT_EQ(pushed().removed, 1U);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 0U);
}

/// rsync's stream to the host breaks off after some bytes.
constexpr const char* kCutStream =
    "if [ \"$1\" = --server ]; then stdbuf -o0 head -c 300000 | exec /usr/bin/rsync \"$@\"; exit; "
    "fi\n"
    "exec /usr/bin/rsync \"$@\"\n";

TEST_F(LocalPushTest, AnInterruptedPushLeavesTheOldTreeAndTheNextOneMendsIt) {
  scratch_.write("tree/a", "old");
  scratch_.write("tree/gone", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  scratch_.write("tree/big", std::string(2'000'000, 'x'));
  fs::remove(scratch_.path() / "tree/gone");
  put_in_path("rsync", kCutStream);
  const auto result = push_to("~/code");
  EXPECT_GT(result.exit_code, 0);
  EXPECT_EQ(result.hint, "the transfer broke off; the next push takes it up again") << result.err;
  EXPECT_EQ(scratch_.read("home/code/.~tmp~/a"), "newer") << "it had come, and big had not";
  EXPECT_EQ(scratch_.read("home/code/a"), "old");
  EXPECT_EQ(scratch_.read("home/code/gone"), "old") << "a host that failed is not pruned";
  EXPECT_FALSE(fs::exists(scratch_.path() / "home/code/big"));

  ::setenv("PATH", path_.c_str(), 1);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "big"}));
  EXPECT_EQ(scratch_.read("home/code/a"), "newer");
}

// Another host may have got it as it was.
TEST_F(LocalPushTest, AFileThatChangesWhileItIsSentIsNamed) {
  for (const Way way : {Way::rsync, Way::package}) {
    way_ = way;
    scratch_.write("tree/model.py", "version 1");
    scratch_.write("tree/other");
    Elsewhere elsewhere;
    ssh::Remote& remote = way == Way::rsync ? *elsewhere.real : elsewhere;
    const Tree tree = read_tree(scratch_.path() / "tree", {});
    scratch_.write("tree/model.py", "version 2, longer");
    const auto result = push(remote, tree, {{0, "~/code"}}, told_).at(0);
    EXPECT_EQ(result.error, "model.py changed while the files were sent");
    EXPECT_NE(result.hint, "");
    EXPECT_OK(push_to("~/code"));
    EXPECT_EQ(scratch_.read("home/code/model.py"), "version 2, longer");
  }
}

enum class When { before, after };

/// An rsync that lets another dtool begin to send before or after it has been the host's.
std::string overtaken(When when) {
  const std::string begin =
      "for lock in \"$HOME\"/.dtool/trees/*.lock; do echo another > \"$lock\"; done\n";
  const std::string is_ours = "if [ \"$1\" != --server ]; then ";
  const std::string exec_real = "exec /usr/bin/rsync \"$@\"\n";
  return when == When::before ? is_ours + begin + "fi\n" + exec_real
                              : is_ours + exec_real + "fi\n/usr/bin/rsync \"$@\"\ncode=$?\n" +
                                    begin + "exit $code\n";
}

TEST_F(LocalPushTest, WhatAnotherDtoolBeganToSendMeanwhileIsNotMixedWithThis) {
  scratch_.write("tree/a", "old");
  scratch_.write("tree/gone", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  fs::remove(scratch_.path() / "tree/gone");
  put_in_path("rsync", overtaken(When::before));
  const auto result = push_to("~/code");
  EXPECT_NE(result.error.find("another dtool is sending another tree there"), std::string::npos)
      << result.error;
  EXPECT_NE(result.hint.find("--code_path"), std::string::npos) << result.hint;
  EXPECT_EQ(scratch_.read("home/code/a"), "old");

  put_in_path("rsync", overtaken(When::after));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "gone"})) << "the other one prunes";
  ::setenv("PATH", path_.c_str(), 1);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_F(LocalPushTest, FilesOfAnInterruptedPushAreKnownToBeDtools) {
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  scratch_.write("home/code/b");  // the same, and not from dtool
  // It may compare (-n), and not send.
  put_in_path("rsync",
              "[ \"$1\" != --server ] || case ${2%%e.*} in *n*) ;; *) exit 14 ;; esac\n"
              "exec /usr/bin/rsync \"$@\"\n");
  EXPECT_FALSE(push_to("~/code").ok());
  scratch_.write("home/code/a", "as if rsync had come so far");
  ::setenv("PATH", path_.c_str(), 1);
  fs::remove(scratch_.path() / "tree/a");
  fs::remove(scratch_.path() / "tree/b");
  scratch_.write("tree/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"b", "c"})) << "b was there before and never sent";
}

TEST_F(LocalPushTest, WithoutRsyncThereThatIsWhatItSays) {
  scratch_.write("tree/a");
  for (const char* name :
       {"sh", "cat", "mkdir", "head", "id", "chmod", "rm", "mv", "uname", "readlink"}) {
    put_in_path(name, std::string("exec /bin/") + name + " \"$@\"\n");
  }
  ::setenv("PATH", (scratch_.path() / "bin").c_str(), 1);
  const auto result = push_to("~/code");
  EXPECT_EQ(result.error, "rsync is not installed");
  EXPECT_EQ(result.hint, "its package is called rsync on every system");
  EXPECT_FALSE(result.ok());
}

}  // namespace
}  // namespace dtool::tree_sync
