// SPDX-License-Identifier: MIT
// What `~` stands for on this machine.
#include "ssh/machine/files.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

TEST(HomeFolder, HonoursTheVariable) {
  const tests::TemporaryVariable given("HOME", "/somewhere");
  EXPECT_EQ(home_folder(), "/somewhere");
  const tests::TemporaryVariable empty("HOME", "");
  EXPECT_EQ(home_folder(), getpwuid(getuid())->pw_dir);
}

TEST(FromHome, ReplacesATildeThatIsTheFirstPart) {
  const tests::TemporaryVariable given("HOME", "/somewhere");
  EXPECT_EQ(from_home("~"), "/somewhere");
  EXPECT_EQ(from_home("~/a/~"), "/somewhere/a/~");
  for (const char* path : {"~ann/a", "a/~/b", "/a", ""}) EXPECT_EQ(from_home(path), path);
}

}  // namespace
}  // namespace dtool::ssh
