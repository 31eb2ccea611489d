// SPDX-License-Identifier: MIT
// Files that are whole or absent.
#include "killfiles/whole_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
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
  write_whole(folder.path() / "new" / "x", "text");
  EXPECT_TRUE(steps.text().starts_with("flush " + folder.path().string() + "\n")) << steps.text();
  EXPECT_TRUE(steps.are_flushed_before("", "name ", "")) << steps.text();
  EXPECT_TRUE(steps.text().ends_with("flush " + folder.path().string() + "/new\n")) << steps.text();
}

TEST(WholeFile, ThatCannotBeWrittenLeavesTheFolderAsItWas) {
  const tests::TemporaryFolder folder;
  folder.write("x/inside", "");  // a folder stands where the file should
  EXPECT_THROW(write_whole(folder.path() / "x", "text"), std::system_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(write_whole(folder.path() / "x" / "inside" / "y", "text"), std::system_error);
}

/// What write_whole says of a file that it cannot write.
std::string write_fault(const fs::path& file, const std::string& text = "text") {
  try {
    write_whole(file, text);
  } catch (const std::system_error& fault) {
    return fault.what();
  }
  return "";
}

TEST(WholeFile, ThatCannotBeWrittenIsNamedWithWhatCouldNotBeDone) {
  const tests::TemporaryFolder folder;
  const fs::path inside = folder.write("file", "") / "a";
  EXPECT_TRUE(write_fault(inside / "x").starts_with(inside.string() + ": cannot be made: "));
  const fs::path taken = folder.write("x/inside", "").parent_path();
  EXPECT_TRUE(write_fault(taken).starts_with(taken.string() + ": cannot be written: "));
  const fs::path long_name = folder.path() / std::string(250, 'x');  // 255 is a name's limit
  EXPECT_TRUE(write_fault(long_name).starts_with(long_name.string() + ": cannot be written: "));
  tests::DiskSteps steps;
  steps.fail_flushes_of("/new");
  const fs::path new_folder = folder.path() / "new";
  EXPECT_TRUE(write_fault(new_folder / "x")
                  .starts_with(new_folder.string() + ": cannot be written to disk: "));
}

TEST(WholeFile, WhoseTextCannotBeFlushedKeepsItsOldText) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.write("x", "old");
  tests::DiskSteps steps;
  steps.fail_flushes_of("");
  EXPECT_TRUE(write_fault(file).starts_with(file.string() + ": cannot be written to disk: "));
  EXPECT_EQ(read_whole(file), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WholeFile, ThatTheDiskHasNoRoomForKeepsItsOldText) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.write("x", "old");
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {4096, before.rlim_max};
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string fault = write_fault(file, std::string(10'000, 'x'));  // a part is written
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, former);
  EXPECT_TRUE(fault.starts_with(file.string() + ": cannot be written: ")) << fault;
  EXPECT_EQ(read_whole(file), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(WholeFile, IsWrittenIntoANewFolderOfTheWorkingFolderToo) {
  const tests::TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const std::string fault = write_fault("new/x") + write_fault("y");
  fs::current_path(before);
  EXPECT_EQ(fault, "");
  EXPECT_EQ(folder.read("new/x") + folder.read("y"), "texttext");
}

TEST(WholeFile, LeavesNoFileOpenThoughStandardInputWasClosed) {
  const tests::TemporaryFolder folder;
  const auto count_open = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto open_before = count_open();
  const int kept = dup(STDIN_FILENO);
  close(STDIN_FILENO);  // so the next file is number 0
  const std::string fault = write_fault(folder.path() / "new" / "x");
  const std::string text = fault.empty() ? read_whole(folder.path() / "new" / "x") : fault;
  dup2(kept, STDIN_FILENO);
  close(kept);
  EXPECT_EQ(text, "text");
  EXPECT_EQ(count_open(), open_before);
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
  EXPECT_EQ(read_whole(folder.write("long", std::string(200'000, 'x'))).size(), 200'000u);
}

}  // namespace
}  // namespace dtool::killfiles
