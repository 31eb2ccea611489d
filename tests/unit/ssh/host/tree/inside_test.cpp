// SPDX-License-Identifier: MIT
// Names from outside lead nowhere but into the folder.
#include "ssh/host/tree/inside.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

class InsideTest : public testing::Test {
 protected:
  InsideTest() {
    scratch_.write("here/sub/deep/b");
    scratch_.write("outside/b", "precious");
    fs::create_directory_symlink(scratch_.path() / "outside", scratch_.path() / "here/link");
    fs::create_symlink("../outside/b", scratch_.path() / "here/file_link");
  }

  tests::TemporaryFolder scratch_;
  Inside inside_{scratch_.write("here/a").parent_path().native()};
};

TEST_F(InsideTest, FilesAreFoundInAnyOrder) {
  for (const char* name : {"a", "sub/deep/b", "sub", "sub/deep", "a", "sub/deep/b", "file_link"})
    EXPECT_TRUE(inside_.look(name)) << name;
  EXPECT_FALSE(inside_.look_at_file("sub/deep"));
  EXPECT_FALSE(inside_.look("sub/de/b"));
  EXPECT_FALSE(inside_.look("a/b"));
  EXPECT_EQ(inside_.target_of("file_link"), "../outside/b");
}

TEST_F(InsideTest, NoNameLeadsOut) {
  const std::string absolute = scratch_.path() / "outside/b";
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../outside/b"), absolute,
        std::string("sub/../../outside/b"), std::string("sub//deep/b"), std::string("sub/deep/"),
        std::string("./a"), std::string("link/b"), std::string("a\0b", 3), std::string("/")}) {
    EXPECT_FALSE(inside_.look(name)) << name;
    EXPECT_EQ(inside_.find(name, Inside::Way::made).folder, -1) << name;
    EXPECT_EQ(inside_.remove({name}), 0U) << name;
  }
  EXPECT_FALSE(inside_.open_file("file_link").is_open());
  EXPECT_EQ(scratch_.read("outside/b"), "precious");
}

TEST_F(InsideTest, WhatGoesTakesTheFoldersAlongThatItLeavesEmpty) {
  scratch_.write("here/sub/kept");
  scratch_.write("here/one/two/three/c");
  EXPECT_EQ(inside_.remove({"a", "one/two/three/c", "sub", "sub/deep/b", "sub/gone"}), 3U);
  EXPECT_FALSE(fs::exists(scratch_.path() / "here/one"));
  EXPECT_FALSE(fs::exists(scratch_.path() / "here/sub/deep"));
  EXPECT_TRUE(fs::exists(scratch_.path() / "here/sub/kept"));
}

TEST_F(InsideTest, AFolderIsDeletedWithAllInItAndNothingBehindALink) {
  fs::create_directory_symlink(scratch_.path() / "outside", scratch_.path() / "here/sub/link");
  inside_.remove_folder("sub");
  inside_.remove_folder("link");
  EXPECT_FALSE(fs::exists(scratch_.path() / "here/sub"));
  EXPECT_EQ(scratch_.read("outside/b"), "precious");
}

/// Root may delete everything, and so this is another's.
TEST_F(InsideTest, AFolderIsDeletedAlsoWhereItsModeForbidsThat) {
  constexpr uid_t kNobody = 65534;
  const fs::path sub = scratch_.path() / "here/sub";
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    for (const fs::path& each : {scratch_.path(), scratch_.path() / "here", sub, sub / "deep"})
      ASSERT_EQ(::chown(each.c_str(), kNobody, kNobody), 0);
  }
  fs::permissions(sub / "deep", fs::perms::owner_read | fs::perms::owner_exec);
  const pid_t child = ::fork();
  if (child == 0) {
    if (is_root && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(1);
    ::prctl(PR_SET_DUMPABLE, 1);  // else /proc/self is root's
    Inside(scratch_.path() / "here").remove_folder("sub");
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(sub));
}

TEST_F(InsideTest, AFolderIsDeletedWithoutWhatIsMountedInIt) {
  constexpr int kCannotMount = 77;
  const fs::path place = scratch_.path() / "here/sub/mount";
  fs::create_directory(place);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_apart =
        ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    const bool is_mounted =
        is_apart && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount((scratch_.path() / "outside").c_str(), place.c_str(), nullptr, MS_BIND, nullptr) ==
            0;
    if (is_mounted) Inside(scratch_.path() / "here").remove_folder("sub");
    ::_exit(is_mounted ? 0 : kCannotMount);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotMount)
    GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(scratch_.path() / "here/sub/deep"));
  EXPECT_EQ(scratch_.read("outside/b"), "precious");
}

}  // namespace
}  // namespace dtool::host
