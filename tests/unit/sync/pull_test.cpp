// SPDX-License-Identifier: MIT
// Bringing outputs here: how rsync is called, what its failures mean.
#include "sync/pull.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fake_remote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

using namespace std::string_literals;

std::ptrdiff_t place_of(const ssh::LocalProgram& program, const std::string& word) {
  const auto& words = program.arguments;
  const auto found = std::ranges::find(words, word);
  return found == words.end() ? -1 : found - words.begin();
}

TEST(Pull, TheHostsFolderIsEnteredAndEverythingInItComes) {
  const auto program = pull_program({"~/it's out"}, "/here/machine0", Link::network);
  EXPECT_GE(place_of(program, "--rsync-path=cd \"$HOME\"/'it'\\''s out' && exec rsync"), 0);
  EXPECT_EQ(program.arguments[program.arguments.size() - 2], "dtool:./");
  EXPECT_EQ(program.arguments.back(), "/here/machine0/.dtool-partial/");
  EXPECT_EQ(program.input, "");
}

TEST(Pull, LinksThatLeaveTheFolderDoNotComeAndNothingHereIsDeleted) {
  const auto program = pull_program({"/out"}, "/here", Link::network);
  EXPECT_GE(place_of(program, "--safe-links"), 0);
  for (const std::string& word : program.arguments) {
    EXPECT_FALSE(word.starts_with("--del")) << word;
    EXPECT_NE(word, "--perms");
    EXPECT_NE(word, "--archive");
  }
}

TEST(Pull, PatternsAreFiltersInTheirOrderWhateverTheyLookLike) {
  const auto program =
      pull_program({"/out", "", {"*.jsonl", "- x", "best/"}}, "/here", Link::local);
  const auto folders = place_of(program, "--filter=+ */");
  const auto first = place_of(program, "--filter=+ *.jsonl");
  const auto second = place_of(program, "--filter=+ - x");
  const auto third = place_of(program, "--filter=+ best/***");
  const auto rest = place_of(program, "--filter=- *");
  EXPECT_TRUE(0 < folders && folders < first && first < second && second < third && third < rest);
}

TEST(Pull, AFileComesByItsNameAlone) {
  EXPECT_EQ(pull_program({"~", "#log"}, "/here", Link::network).input, "/#log\0"s);
}

TEST(Pull, HowFarItIsCountsFilesThatWereHereAlready) {
  ProgressReader reader;
  reader.add("\r      100   5%    0.00kB/s    0:00:00  ");
  const RsyncProgress progress =
      reader.add("\r      200  10%    1.00kB/s    0:00:00 (xfr#2, to-chk=3/12)");
  EXPECT_EQ(progress.sent.files, 2U);
  EXPECT_EQ(progress.sent.bytes, 200U);
  EXPECT_DOUBLE_EQ(progress.fraction, 0.75);
}

/// The last progress that a pull tells if rsync prints this.
double told_fraction(const std::string& printed) {
  struct Told : ssh::Events {
    void on_progress(std::size_t, const ssh::Transferred& so_far) override {
      fraction = so_far.fraction();
    }
    double fraction = -1;
  } told;
  tests::FakeRemote remote("h1");
  remote.answers[0] = tests::answered(printed);
  const tests::TemporaryFolder here;
  pull(remote, {{0, {"/out"}, here.path(), std::chrono::seconds(1), std::nullopt}}, told);
  return told.fraction;
}

TEST(Pull, AFetchThatFindsEverythingHereIsWhole) {
  const std::string all_here = "\r              0   0%    0.00kB/s    0:00:00 (xfr#0, to-chk=0/3)";
  EXPECT_DOUBLE_EQ(told_fraction(all_here), 1);
  EXPECT_DOUBLE_EQ(told_fraction("\r  0   0%    0.00kB/s    0:00:00 (xfr#0, to-chk=1/3)"), 0);
  EXPECT_DOUBLE_EQ(told_fraction("\r  50   5%    1.00kB/s    0:00:00 (xfr#1, to-chk=1/2)"), 0.5);
}

TEST(Pull, WhatRsyncLeavesOutIsTold) {
  tests::FakeRemote remote("h1");
  remote.answers[0] = tests::answered(
      "./\nignoring unsafe symlink \"a\" -> \"/x\"\nfile\n\r 9 9% 1kB/s 0:00:00\r 9 99% 1kB/s\n"
      "skipping non-regular file \"b/pipe\"\n");
  const tests::TemporaryFolder here;
  ssh::Events nobody;
  const auto pulled = pull(remote, {{0, {"/out"}, here.path(), std::chrono::seconds(1)}}, nobody);
  EXPECT_EQ(pulled.front().skipped, (std::vector<std::string>{"a -> /x", "b/pipe"}));
  EXPECT_TRUE(pulled.front().is_complete);
}

ssh::HostResult failed(int exit_code, const std::string& err) {
  ssh::HostResult result;
  result.exit_code = exit_code;
  result.err = err;
  explain_pull(result);
  return result;
}

TEST(Pull, AFullDiskIsThisMachines) {
  const auto result =
      failed(11, "rsync: [receiver] write failed on \"/here/a\": No space left on device (28)\n");
  EXPECT_NE(result.error.find("No space left"), std::string::npos) << result.error;
  EXPECT_TRUE(result.hint.starts_with("free some space on this machine")) << result.hint;
}

TEST(Pull, WhoMayNotReadOrWriteIsTold) {
  const std::string denied = "(send_files) failed: Permission denied (13)\n";
  EXPECT_NE(failed(23, "rsync: [sender] " + denied).hint.find("on the host"), std::string::npos);
  EXPECT_NE(failed(23, "rsync: [generator] " + denied).hint.find("here"), std::string::npos);
}

TEST(Pull, ASilentHostIsNotToldAFlagThatNotAllCommandsHave) {
  EXPECT_EQ(failed(30, "").error, "nothing came from it for too long");
}

TEST(Pull, AFileThatVanishedMeanwhileIsNoFailure) {
  EXPECT_TRUE(failed(24, "file has vanished: \"/out/a.tmp\"\n").ok());
}

}  // namespace
}  // namespace dtool::tree_sync
