// SPDX-License-Identifier: MIT
// Files that are whole or absent.
#include "killfiles/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <system_error>

#include "tests/unit/disk_steps.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::killfiles {
namespace {

namespace fs = std::filesystem;

unsigned mode_of(const fs::path& file) {
  struct stat status = {};
  EXPECT_EQ(stat(file.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(WholeFile, IsWrittenForItsOwnerAloneWithTheFoldersItNeeds) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "a" / "b" / "x.killfile";
  write_whole(file, "text");
  EXPECT_EQ(read_whole(file), "text");
  EXPECT_EQ(mode_of(file), 0600u);
  EXPECT_EQ(mode_of(folder.path() / "a"), 0700u);
  EXPECT_EQ(mode_of(folder.path() / "a" / "b"), 0700u);
}

TEST(WholeFile, TakesThePlaceOfAnOlderOneAndLeavesNothingElse) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.write("x", "a much longer old text");
  write_whole(file, std::string("new\0text", 8));
  EXPECT_EQ(read_whole(file), std::string("new\0text", 8));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WholeFile, IsOnTheDiskBeforeItHasItsNameAndItsNameBeforeTheCallReturns) {
  const tests::TemporaryFolder folder;
  const tests::DiskSteps steps;
  write_whole(folder.path() / "x", "text");
  EXPECT_TRUE(steps.are_flushed_before("", "name ", "")) << steps.text();
  EXPECT_TRUE(steps.text().ends_with("flush " + folder.path().string() + "\n")) << steps.text();
}

TEST(WholeFile, ThatCannotBeWrittenLeavesTheFolderAsItWas) {
  const tests::TemporaryFolder folder;
  folder.write("x/inside", "");  // a folder stands where the file should
  EXPECT_THROW(write_whole(folder.path() / "x", "text"), std::system_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(write_whole(folder.path() / "x" / "inside" / "y", "text"), std::system_error);
}

TEST(WholeFile, ThatCannotBeReadIsNamedWithTheReason) {
  const tests::TemporaryFolder folder;
  try {
    read_whole(folder.path() / "none");
    FAIL();
  } catch (const std::system_error& fault) {
    EXPECT_EQ(fault.code(), std::errc::no_such_file_or_directory);
    EXPECT_NE(std::string(fault.what()).find("none: cannot be read"), std::string::npos);
  }
  EXPECT_THROW(read_whole(folder.path()), std::system_error);
}

}  // namespace
}  // namespace dtool::killfiles
