// SPDX-License-Identifier: MIT
// What has come lies aside until it is whole, and replaces nothing of another kind.
#include "sync/staging.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "ssh/host/tree/copy_folder.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class StagingTest : public ::testing::Test {
 protected:
  void SetUp() override { staging_.make(); }
  /// As rsync does it: under another name first.
  void receive(const std::string& name, const std::string& text) {
    const fs::path file = folder_.write(".dtool-partial/" + name + ".new", text);
    fs::rename(file, staging_.folder() / name);
  }
  Names place(const Names& left_out = {}) { return staging_.place(left_out).other_kinds; }
  std::string here(const std::string& name) { return tests::read_text(folder_.path() / name); }

  tests::TemporaryFolder folder_;
  tests::TemporaryFolder home_;
  tests::TemporaryVariable home_variable_{"HOME", home_.path().string()};
  Staging staging_{folder_.path()};
};

TEST_F(StagingTest, WhatCameGoesToItsPlaceAndReplacesWhatCameBefore) {
  receive("a/file", "old");
  EXPECT_EQ(place(), Names{});
  folder_.write("a/mine", "mine");
  receive("a/file", "new");
  fs::create_directory(staging_.folder() / "empty");
  fs::create_symlink("file", staging_.folder() / "a/link");
  EXPECT_EQ(place(), Names{});
  EXPECT_EQ(here("a/file"), "new");
  EXPECT_EQ(here("a/mine"), "mine");
  EXPECT_EQ(fs::read_symlink(folder_.path() / "a/link"), "file");
  EXPECT_TRUE(fs::is_directory(folder_.path() / "empty"));
  EXPECT_FALSE(fs::exists(staging_.folder()));
}

/// For a process of its own. A folder cannot be made any more; which files come before it, the file
/// system decides. Returns 0 if some did, and all of these are on record.
int place_without_folders(const fs::path& folder) {
  constexpr int kTries = 12;
  fs::create_directory(fs::path(std::getenv("HOME")) / ".dtool");
  std::vector<Staging> stagings;
  for (int i = 0; i < kTries; ++i) {
    const fs::path destination = folder / std::to_string(i);
    fs::create_directories(destination / kPartial / "sub");
    for (const char* name : {"a", "b", "c"}) std::ofstream(destination / kPartial / name) << i;
    stagings.emplace_back(destination);
  }
  tests::refuse_call(SYS_mkdir, ENOSPC);
  int placed = 0;
  for (Staging& staging : stagings) {
    EXPECT_THROW(staging.place({}), fs::filesystem_error);
    for (const char* name : {"a", "b", "c"}) {
      struct stat there {};
      if (::lstat((staging.folder().parent_path() / name).c_str(), &there) != 0) continue;
      ++placed;
      if (!host::CopiedFiles().has(there)) return 1;
    }
  }
  return placed > 0 ? 0 : 2;
}

TEST_F(StagingTest, WhatIsInItsPlaceIsOnRecordThoughTheRestCannotFollow) {
  EXPECT_EXIT(std::_Exit(place_without_folders(folder_.path() / "many")),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(StagingTest, WhatAPersonPutThereOrEditedStays) {
  receive("edited", "one");
  receive("link", "one");
  EXPECT_EQ(place(), Names{});
  folder_.write("edited", "notes");
  folder_.write("own", "notes");
  folder_.write("alike", "same");
  for (const char* name : {"alike", "edited", "own"}) receive(name, "same");
  receive("link", "two");
  Names foreign = staging_.place({}).foreign;
  std::ranges::sort(foreign);
  EXPECT_EQ(foreign, (Names{"edited", "own"}));
  EXPECT_EQ(here("edited"), "notes");
  EXPECT_EQ(here("own"), "notes");
  EXPECT_EQ(here("link"), "two");
  EXPECT_EQ(staging_.place({}, Foreign::overwrite).foreign, Names{});
  EXPECT_EQ(here("edited") + here("own"), "samesame");
}

TEST_F(StagingTest, NothingOfAnotherKindMakesWay) {
  folder_.write("file", "mine");
  folder_.write("folder/mine", "mine");
  folder_.write("elsewhere/mine", "mine");
  fs::create_symlink("elsewhere", folder_.path() / "link");
  receive("file/new", "new");
  receive("folder", "new");
  receive("link/mine", "new");
  Names in_the_way = place();
  std::ranges::sort(in_the_way);
  EXPECT_EQ(in_the_way, (Names{"file", "folder", "link"}));
  EXPECT_EQ(here("file"), "mine");
  EXPECT_EQ(here("folder/mine"), "mine");
  EXPECT_EQ(here("elsewhere/mine"), "mine");
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link"));
}

TEST_F(StagingTest, AFileCountsAsChangedUntilItComesNoMore) {
  receive("file", "one");
  receive("other", "one");
  Names changed = staging_.look();
  std::ranges::sort(changed);
  EXPECT_EQ(changed, (Names{"file", "other"}));
  receive("file", "two");
  EXPECT_EQ(staging_.look(), Names{"file"});
  EXPECT_EQ(staging_.look(), Names{});
}

TEST_F(StagingTest, AFileThatOnlyGrewIsCutAndOneThatChangedIsNot) {
  receive("grown", "one\n");
  receive("changed", "one\n");
  staging_.remember(staging_.look());
  receive("grown", "one\ntwo\n");
  receive("changed", "two\ntwo\n");
  EXPECT_TRUE(staging_.cut_to_remembered("grown"));
  EXPECT_FALSE(staging_.cut_to_remembered("changed"));
  EXPECT_FALSE(staging_.cut_to_remembered("new"));
  EXPECT_EQ(place({"changed"}), Names{});
  EXPECT_EQ(here("grown"), "one\n");
  EXPECT_FALSE(fs::exists(folder_.path() / "changed"));
  EXPECT_TRUE(fs::exists(staging_.folder() / "changed"));
}

TEST_F(StagingTest, ACheckpointThatIsStillBeingWrittenIsNotCut) {
  const std::string begun("PK\x03\x04\0\0", 6);
  receive("last.pt", begun);
  staging_.remember(staging_.look());
  receive("last.pt", begun + "more");
  EXPECT_FALSE(staging_.cut_to_remembered("last.pt"));
}

TEST_F(StagingTest, WhatAnEarlierPullLeftIsNotTakenForWhole) {
  receive("a/file", "half");
  staging_.make();
  EXPECT_EQ(staging_.look(), Names{});
  EXPECT_EQ(here(".dtool-partial/a/.dtool-partial/file"), "half");
  EXPECT_EQ(place(), Names{});
  EXPECT_FALSE(fs::exists(folder_.path() / "a/file"));
}

}  // namespace
}  // namespace dtool::tree_sync
