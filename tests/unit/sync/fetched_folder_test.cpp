// SPDX-License-Identifier: MIT
// What was fetched is no code: which files of a folder with fetched outputs are sent.
#include "sync/pull.h"

#include <gtest/gtest.h>

#include <chrono>

#include "sync/tree.h"
#include "tests/unit/git.h"
#include "tests/unit/temporary_folder.h"

using namespace dtool::tree_sync;

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class FetchedFolder : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"main.py", "results/machine0/last.pt", "results/machine0/logs/1.txt", "results/notes"})
      folder_.write(name, "content");
    mark_fetched(here_ / "results/machine0", "digits_2026");
  }

  /// Git tracks these files, which it would ignore.
  void track(const Names& files) {
    if (!dtool::tests::prepare_git()) GTEST_SKIP() << "git is not installed";
    dtool::tests::git_in(here_, {"init", "-q"});
    for (const std::string& file : files) dtool::tests::git_in(here_, {"add", "-f", file});
  }

  Names files(const Names& excludes = {}, const Names& includes = {}) const {
    return read_tree(here_, excludes, includes).files;
  }

  const dtool::tests::TemporaryFolder folder_;
  const fs::path& here_ = folder_.path();
};

}  // namespace

TEST_F(FetchedFolder, NamesTheRunWhoseOutputsItHas) {
  EXPECT_EQ(fetched_run(here_ / "results/machine0"), "digits_2026");
  EXPECT_EQ(fetched_run(here_ / "results"), std::nullopt);
  folder_.write("results/.gitignore", "# dtool fetched the outputs of the run x\n");
  EXPECT_EQ(fetched_run(here_ / "results"), std::nullopt) << "a person's own";
}

TEST_F(FetchedFolder, WithHalfAMarkAloneIsTheRunsThatWasToBeFetched) {
  folder_.write("cut/.gitignore", "# dtool fetched the outputs of the run dig");
  folder_.write("empty/.gitignore", "");
  EXPECT_TRUE(has_only_half_a_mark(here_ / "cut", "digits_2026"));
  EXPECT_TRUE(has_only_half_a_mark(here_ / "empty", "digits_2026"));
  EXPECT_FALSE(has_only_half_a_mark(here_ / "cut", "mnist_2026"));
  folder_.write("empty/model.pt", "a person's own");
  EXPECT_FALSE(has_only_half_a_mark(here_ / "empty", "digits_2026"));
  EXPECT_FALSE(has_only_half_a_mark(here_ / "none", "digits_2026"));
}

TEST_F(FetchedFolder, KeepsItsMarkWhereItIsMarkedAgain) {
  const fs::path mark = here_ / "results/machine0/.gitignore";
  const auto before = fs::last_write_time(mark) - std::chrono::hours(1);
  fs::last_write_time(mark, before);
  mark_fetched(here_ / "results/machine0", "digits_2026");
  EXPECT_EQ(fs::last_write_time(mark), before) << "it was written again, and could be cut short";
}

TEST_F(FetchedFolder, IsNoCode) {
  EXPECT_EQ(files(), (Names{"main.py", "results/notes"}));
}

TEST_F(FetchedFolder, IsNoCodeOfACheckoutButForWhatGitTracks) {
  track({"main.py", "results/machine0/last.pt"});
  EXPECT_EQ(files(), (Names{"main.py", "results/machine0/last.pt", "results/notes"}));
}

TEST_F(FetchedFolder, IsSentWhereItIsIncluded) {
  const Names all = {"main.py", "results/machine0/.gitignore", "results/machine0/last.pt",
                     "results/machine0/logs/1.txt", "results/notes"};
  EXPECT_EQ(files({}, {"results"}), all);
  EXPECT_EQ(files({".gitignore", "logs/"}, {"results/machine0"}),
            (Names{"main.py", "results/machine0/last.pt", "results/notes"}));
  track({"main.py"});
  EXPECT_EQ(files({}, {"results"}), all);
  const Tree tree = read_tree(here_, {}, {"results/machine0/last.pt", "main.py"});
  EXPECT_EQ(tree.files, (Names{"main.py", "results/machine0/last.pt", "results/notes"}));
  EXPECT_EQ(tree.bytes, 3 * 7U);
  EXPECT_EQ(tree.looks.size(), 3U);
  EXPECT_THROW(files({}, {"results/nothing"}), std::runtime_error);
}

TEST_F(FetchedFolder, GoesAgainOnlyIfItHasNothing) {
  remove_if_only_marked(here_ / "results/machine0");
  EXPECT_TRUE(fs::exists(here_ / "results/machine0/last.pt"));
  fs::create_directory(here_ / "new");
  remove_if_only_marked(here_ / "new");
  EXPECT_TRUE(fs::exists(here_ / "new")) << "a person's own folder";
  mark_fetched(here_ / "new", "digits_2026");
  remove_if_only_marked(here_ / "new");
  EXPECT_FALSE(fs::exists(here_ / "new"));
}
