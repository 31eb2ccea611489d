// SPDX-License-Identifier: MIT
#include "sync/restored_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "sync/contents.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class RestoredTreeTest : public ::testing::Test {
 protected:
  RestoredTreeTest() {
    scratch_.write("code/a.py", "one");
    scratch_.write("code/sub/b.py", "two");
    scratch_.write("code/sub/run.sh", "three");
    fs::permissions(code() / "sub/run.sh", fs::perms::owner_all);
    fs::permissions(code() / "sub", fs::perms::owner_all | fs::perms::group_read);
    fs::create_symlink("../data", code() / "link");
    const timespec times[] = {{1'000'000'000, 1}, {1'000'000'000, 123'456'789}};
    ::utimensat(AT_FDCWD, (code() / "a.py").c_str(), times, 0);
    const Tree tree = read_tree(code(), {});
    sent_ =
        *list_tree(tree, read_contents(tree, scratch_.path() / "words", std::time(nullptr))).text;
  }

  fs::path code() const { return scratch_.path() / "code"; }
  RestoredTree restored() { return {make_listing(sent_), scratch_.path() / "brought"}; }
  static std::string fingerprint_of(const Tree& tree, const fs::path& words) {
    return list_tree(tree, read_contents(tree, words, std::time(nullptr))).fingerprint;
  }

  tests::TemporaryFolder scratch_;
  std::string sent_;  ///< the listing's text
};

TEST_F(RestoredTreeTest, HasTheFingerprintOfWhatWasSentWhateverTheCopiesTimesAndModes) {
  // As a run's own tree has it: other modes of folders, and links that lead elsewhere.
  fs::permissions(code() / "sub", fs::perms::owner_all);
  fs::permissions(code() / "sub/run.sh", fs::perms::owner_read | fs::perms::owner_write);
  fs::last_write_time(code() / "a.py", fs::file_time_type::clock::now());
  fs::remove(code() / "link");
  fs::create_symlink("/elsewhere", code() / "link");
  scratch_.write("code/result", "not of the tree");
  RestoredTree tree = restored();
  EXPECT_EQ(tree.missing(), (Names{"a.py", "sub/b.py", "sub/run.sh"}));
  tree.copy_from(code());
  tree.prove();
  ASSERT_EQ(tree.missing(), Names());
  const Tree found = tree.finish();
  EXPECT_EQ(found.files, (Names{"a.py", "link", "sub/b.py", "sub/run.sh"}));
  EXPECT_EQ(fingerprint_of(found, scratch_.path() / "words"), make_listing(sent_).fingerprint);
  EXPECT_FALSE(fs::exists(tree.root() / "result"));
}

TEST_F(RestoredTreeTest, TakesEachFileFromTheFirstFolderThatHasItAsItWas) {
  fs::copy(code(), scratch_.path() / "other",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  scratch_.write("code/sub/b.py", "TWO");
  scratch_.write("other/a.py", "ONE");
  RestoredTree tree = restored();
  tree.copy_from(code());
  tree.prove();
  EXPECT_EQ(tree.missing(), Names{"sub/b.py"}) << "of the right size, and edited";
  EXPECT_FALSE(fs::exists(tree.root() / "sub/b.py"));
  tree.copy_from(scratch_.path() / "nowhere");
  tree.prove();
  EXPECT_EQ(tree.missing(), Names{"sub/b.py"});
  tree.copy_from(scratch_.path() / "other");
  tree.prove();
  EXPECT_EQ(tree.missing(), Names());
  EXPECT_EQ(fingerprint_of(tree.finish(), scratch_.path() / "words"),
            make_listing(sent_).fingerprint);
}

TEST_F(RestoredTreeTest, TakesNothingThroughALinkThatAHostSent) {
  RestoredTree tree = restored();
  fs::create_directory_symlink(code() / "sub", tree.root() / "sub");
  fs::create_symlink(code() / "a.py", tree.root() / "a.py");
  tree.prove();
  EXPECT_EQ(tree.missing(), (Names{"a.py", "sub/b.py", "sub/run.sh"}));
  EXPECT_EQ(fs::symlink_status(tree.root() / "sub").type(), fs::file_type::not_found);
  EXPECT_TRUE(fs::exists(code() / "sub/b.py"));
  fs::create_directories(tree.root() / "a.py/of a host");
  tree.prove();
  EXPECT_FALSE(fs::exists(tree.root() / "a.py"));
}

TEST_F(RestoredTreeTest, NamesThatLeadOutOfTheFolderAndListsWithoutContentsAreRefused) {
  const auto is_refused = [this](const std::string& name, const std::string& content) {
    const std::string text = name + '\0' + content + " 1 1.0 644 " + '\0';
    try {
      const RestoredTree tree(make_listing(text), scratch_.path() / "brought");
    } catch (const std::runtime_error&) {
      return true;
    }
    return false;
  };
  const std::string word(32, '0');
  for (const char* name : {"/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/..", ""})
    EXPECT_TRUE(is_refused(name, word)) << name;
  EXPECT_FALSE(is_refused("a/..b/c..", word));
  EXPECT_TRUE(is_refused("a", ""));
}

}  // namespace
}  // namespace dtool::tree_sync
