// SPDX-License-Identifier: MIT
#include "sync/tree.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace dtool::tree_sync {
namespace {

bool excludes(const std::string& pattern, const std::string& file) {
  return Excludes({pattern}).match_file(file);
}

TEST(Exclude, APatternWithoutASlashMatchesAnyComponent) {
  EXPECT_TRUE(excludes("*.ckpt", "a.ckpt"));
  EXPECT_TRUE(excludes("*.ckpt", "deep/down/a.ckpt"));
  EXPECT_TRUE(excludes("data", "src/data/x.bin"));
  EXPECT_TRUE(excludes("data", "data"));
  EXPECT_FALSE(excludes("data", "database/x"));
  EXPECT_FALSE(excludes("data", "mydata"));
}

TEST(Exclude, APatternWithASlashMatchesFromTheRoot) {
  EXPECT_TRUE(excludes("src/data", "src/data/x.bin"));
  EXPECT_TRUE(excludes("/data", "data/x"));
  EXPECT_TRUE(excludes("./src/*.py", "src/a.py"));
  EXPECT_FALSE(excludes("/data", "src/data/x"));
  EXPECT_FALSE(excludes("src/*.py", "src/deep/a.py"));
}

TEST(Exclude, ASlashAtTheEndMatchesFoldersOnly) {
  EXPECT_TRUE(excludes("build/", "build/a.o"));
  EXPECT_TRUE(excludes("build/", "src/build/a.o"));
  EXPECT_FALSE(excludes("build/", "src/build"));
  EXPECT_TRUE(Excludes({"build/"}).match_folder("src/build"));
  EXPECT_TRUE(excludes("/out/", "out/x"));
}

TEST(Exclude, TwoStarsStandForAnyFoldersAsGitHasIt) {
  for (const char* name : {"data", "data/x", "a/data", "a/b/data/x"})
    EXPECT_TRUE(excludes("**/data", name)) << name;
  EXPECT_FALSE(excludes("**/data", "a/mydata"));
  EXPECT_TRUE(excludes("a/**/b", "a/b"));
  EXPECT_TRUE(excludes("a/**/b", "a/x/y/b"));
  EXPECT_FALSE(excludes("a/**/b", "x/a/b"));
  EXPECT_TRUE(excludes("a/**", "a/x"));
  EXPECT_FALSE(Excludes({"a/**"}).match_folder("a"));
}

TEST(Exclude, PatternsThatMatchedNothingAreTold) {
  const Excludes all({"*.o", "build/", "*.ckpt"});
  EXPECT_TRUE(all.match_file("build/a.o"));
  EXPECT_TRUE(all.match_file("b.o"));
  EXPECT_EQ(all.unused(), std::vector<std::string>{"*.ckpt"});
}

TEST(Exclude, AwkwardNamesAreMatchedAsTheyAre) {
  EXPECT_TRUE(excludes("a b", "x/a b/c"));
  EXPECT_TRUE(excludes("*'*", "it's"));
  EXPECT_TRUE(excludes("\\*", "*"));
  EXPECT_FALSE(excludes("\\*", "a"));
  EXPECT_TRUE(excludes("*.log", ".hidden.log"));
}

TEST(Exclude, NoPatternMatchesNothing) {
  EXPECT_FALSE(Excludes({}).match_file("a"));
}

TEST(Exclude, APatternThatExcludesNothingIsRefused) {
  for (const char* pattern : {"", "/", "./"}) {
    EXPECT_THROW(Excludes({pattern}), std::invalid_argument) << pattern;
  }
}

}  // namespace
}  // namespace dtool::tree_sync
