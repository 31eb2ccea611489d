// SPDX-License-Identifier: MIT
#include "sync/contents.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

class ContentsTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    scratch_.write("tree/" + name, text);
    fs::last_write_time(scratch_.path() / "tree" / name, fs::file_time_type());
  }
  /// As of so many seconds from now.
  std::vector<std::string> words(int later) const {
    return read_contents(read_tree(scratch_.path() / "tree", {}), folder_,
                         std::time(nullptr) + later);
  }

  tests::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path() / "kept";
};

TEST_F(ContentsTest, AWordIsTheBeginningOfTheSha256) {
  write("a", "abc");
  write("b", "");
  fs::create_symlink("a", scratch_.path() / "tree/link");
  EXPECT_EQ(words(0), (std::vector<std::string>{"ba7816bf8f01cfea414140de5dae2223",
                                                "e3b0c44298fc1c149afbf4c8996fb924", ""}));
}

TEST_F(ContentsTest, AnEditThatKeepsSizeAndTimeIsSeen) {
  write("a", "abc");
  write("b", "abc");
  const auto before = words(60);
  write("a", "abd");
  const auto now = words(60);
  EXPECT_NE(now[0], before[0]);
  EXPECT_EQ(now[1], before[1]);
}

TEST_F(ContentsTest, NothingIsReadThroughALinkThatTookAFoldersPlace) {
  write("sub/a", "abc");
  const Tree tree = read_tree(scratch_.path() / "tree", {});
  fs::rename(scratch_.path() / "tree/sub", scratch_.path() / "private");
  fs::create_directory_symlink("../private", scratch_.path() / "tree/sub");
  EXPECT_EQ(read_contents(tree, folder_, 0), std::vector<std::string>{""});
}

TEST_F(ContentsTest, WhatWasJustWrittenIsNotKept) {
  write("a", "abc");
  words(0);
  EXPECT_TRUE(newest_first(folder_).empty());
}

TEST_F(ContentsTest, AFileThatCannotGetItsNameIsNotLeftBehind) {
  fs::create_directories(folder_ / "taken" / "by a folder");
  EXPECT_THROW(keep_file(folder_, "taken", "a", "b"), fs::filesystem_error);
  EXPECT_EQ(newest_first(folder_), std::vector<fs::path>{folder_ / "taken"});
}

TEST_F(ContentsTest, AKeptWordServesUntilTheFileIsTouched) {
  write("a", "abc");
  write("new\nline", "abc");
  write("z", "");
  const auto right = words(60);
  const auto kept = newest_first(folder_);
  ASSERT_EQ(kept.size(), 1U);
  std::string text = scratch_.read(kept[0]);
  const std::string other(32, 'f');
  for (std::size_t at; (at = text.find(right[0])) != text.npos;) text.replace(at, 32, other);
  std::ofstream(kept[0], std::ios::binary) << text;
  EXPECT_EQ(words(60), (std::vector<std::string>{other, other, right[2]})) << "not read again";
  write("new\nline", "abc");
  EXPECT_EQ(words(0), (std::vector<std::string>{other, right[1], right[2]}));
  fs::remove(scratch_.path() / "tree/a");
  EXPECT_EQ(words(0), (std::vector<std::string>{right[1], right[2]}));
  std::ofstream(kept[0], std::ios::binary) << "spoilt";
  EXPECT_EQ(words(0), (std::vector<std::string>{right[1], right[2]}));
}

}  // namespace
}  // namespace dtool::tree_sync
