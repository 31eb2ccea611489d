// SPDX-License-Identifier: MIT
// How hosts find out that they share a folder.
#include "ssh/host/tree/tree_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(Mark, TheFirstHostMakesItTheOthersFindItAndOnlyTheFirstRemovesIt) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path();
  const Mark first(path, "5f", 0);
  const Mark second(path, "5f", 1);
  EXPECT_FALSE(first.take());
  EXPECT_EQ(second.take(), 0);
  EXPECT_EQ(second.holder(), 0);
  EXPECT_FALSE(first.holder());
  second.let_go();
  EXPECT_EQ(second.holder(), 0);
  first.let_go();
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(Mark, MarksOfOtherNamesAndInOtherFoldersAreNotFound) {
  const tests::TemporaryFolder one;
  const tests::TemporaryFolder other;
  EXPECT_FALSE(Mark(one.path(), "5f", 0).take());
  EXPECT_FALSE(Mark(one.path(), "60", 1).take());
  EXPECT_FALSE(Mark(other.path(), "5f", 1).take());
}

TEST(Mark, WithoutANameNothingIsWritten) {
  const tests::TemporaryFolder folder;
  EXPECT_FALSE(Mark(folder.path(), "", 0).take());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Mark, OneThatADiskHasNoRoomForIsNotLeftEmpty) {
  const tests::TemporaryFolder folder;
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &none);
  EXPECT_FALSE(Mark(folder.path(), "5f", 0).take());
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace dtool::host
