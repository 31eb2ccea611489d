// SPDX-License-Identifier: MIT
// A commit is said to be what is sent only if it is, whatever settings and marks have git overlook
// what differs.
#include "sync/git_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/git.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

class GitStateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tests::prepare_git()) GTEST_SKIP() << "git is not installed";
    git({"init", "-q"});
    scratch_.write("p/a", "one\n");
    scratch_.write("p/sub/b", "two\n");
    git({"add", "--all"});
    git({"commit", "-q", "-m", "first"});
  }

  void git(const std::vector<std::string>& words, const std::string& folder = "p") const {
    tests::git_in(scratch_.path() / folder, words);
  }
  fs::path root() const { return scratch_.path() / "p"; }
  bool is_dirty(const std::string& folder = "") const {
    const auto state = git_state(root() / folder, "");
    EXPECT_TRUE(state);
    return state && state->is_dirty;
  }
  std::string diff() const {
    const auto state = git_state(root(), "");
    return git_diff(root(), state.value(), git_files(root()), 1U << 20U).text;
  }

  tests::TemporaryFolder scratch_;
};

TEST_F(GitStateTest, AnEditedFileThatTheIndexIsToOverlookIsAChange) {
  for (const char* mark : {"skip-worktree", "assume-unchanged"}) {
    EXPECT_FALSE(is_dirty()) << mark;
    git({"update-index", std::string("--") + mark, "a"});
    EXPECT_FALSE(is_dirty()) << mark;
    scratch_.write("p/a", "edited\n");
    EXPECT_TRUE(is_dirty()) << mark;
    EXPECT_FALSE(is_dirty("sub")) << mark;
    EXPECT_NE(diff().find("+edited"), std::string::npos) << mark;
    scratch_.write("p/a", "one\n");
    git({"update-index", std::string("--no-") + mark, "a"});
  }
}

TEST_F(GitStateTest, TheUsersIndexKeepsItsMarks) {
  git({"update-index", "--skip-worktree", "a"});
  const std::string before = scratch_.read("p/.git/index");
  scratch_.write("p/a", "edited\n");
  EXPECT_TRUE(is_dirty());
  EXPECT_EQ(scratch_.read("p/.git/index"), before);
}

TEST_F(GitStateTest, FilesThatASparseCheckoutLeavesOutAreNoChange) {
  git({"update-index", "--skip-worktree", "a"});
  fs::remove(root() / "a");
  EXPECT_FALSE(is_dirty());
  git({"update-index", "--no-skip-worktree", "a"});
  EXPECT_TRUE(is_dirty());
}

TEST_F(GitStateTest, SettingsHideNoChange) {
  for (const char* setting :
       {"core.fileMode=false", "core.trustctime=false", "core.checkStat=minimal",
        "core.ignoreStat=true", "status.showUntrackedFiles=no", "diff.ignoreSubmodules=all",
        "core.untrackedCache=true", "core.sparseCheckout=true",
        "sparse.expectFilesOutsideOfPatterns=true"}) {
    const std::string text = setting;
    git({"config", text.substr(0, text.find('=')), text.substr(text.find('=') + 1)});
  }
  EXPECT_FALSE(is_dirty());
  ::chmod((root() / "a").c_str(), 0755);
  EXPECT_TRUE(is_dirty()) << "the mode is sent, too";
  ::chmod((root() / "a").c_str(), 0644);
  EXPECT_FALSE(is_dirty());
  scratch_.write("p/new");
  EXPECT_TRUE(is_dirty()) << "a new file is sent";
  fs::remove(root() / "new");
  // With the size and the time that git has noted.
  const auto time = fs::last_write_time(root() / "a");
  scratch_.write("p/a", "ONE\n");
  fs::last_write_time(root() / "a", time);
  EXPECT_TRUE(is_dirty());
}

TEST_F(GitStateTest, AFileInThePlaceOfALinkIsAChange) {
  fs::create_symlink("a", root() / "link");
  git({"add", "link"});
  git({"commit", "-q", "-m", "link"});
  git({"config", "core.symlinks", "false"});
  fs::remove(root() / "link");
  scratch_.write("p/link", "a");
  EXPECT_TRUE(is_dirty());
}

TEST_F(GitStateTest, AReplacedCommitIsNotTheOneThatIsNamed) {
  scratch_.write("p/a", "other\n");
  git({"commit", "-q", "-a", "-m", "second"});
  git({"replace", "HEAD~1", "HEAD"});
  git({"reset", "-q", "--soft", "HEAD~1"});
  EXPECT_TRUE(is_dirty());
}

TEST_F(GitStateTest, LineEndsAreComparedByGitsRules) {
  git({"config", "core.autocrlf", "true"});
  scratch_.write("p/a", "one\r\n");
  git({"add", "a"});
  EXPECT_FALSE(is_dirty());
  scratch_.write("p/a", "two\r\n");
  EXPECT_TRUE(is_dirty());
}

TEST_F(GitStateTest, AnEditInARepositoryInsideIsAChange) {
  git({"init", "-q"}, "library");
  scratch_.write("library/c", "three\n");
  git({"add", "--all"}, "library");
  git({"commit", "-q", "-m", "library"}, "library");
  git({"submodule", "add", "-q", (scratch_.path() / "library").native(), "lib"});
  git({"config", "-f", ".gitmodules", "submodule.lib.ignore", "all"});
  git({"commit", "-q", "-a", "-m", "with it"});
  EXPECT_FALSE(is_dirty());
  scratch_.write("p/lib/c", "edited\n");
  const auto state = git_state(root(), "");
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->is_dirty);
  EXPECT_EQ(state->inner, (std::vector<std::string>{"lib"}));
  EXPECT_NE(git_diff(root(), *state, git_files(root()), 1U << 20U).left_out, "");
  EXPECT_FALSE(is_dirty("sub")) << "it is not sent from there";
  git({"commit", "-q", "-a", "-m", "edited"}, "p/lib");
  EXPECT_TRUE(is_dirty()) << "another commit than the recorded one";
  git({"config", "filter.own.clean", "cat"}, "p/lib");
  EXPECT_TRUE(is_dirty()) << "its filters are not run";
}

}  // namespace
}  // namespace dtool::tree_sync
