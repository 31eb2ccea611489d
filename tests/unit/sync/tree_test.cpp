// SPDX-License-Identifier: MIT
#include "sync/tree.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/unit/git.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::string>;

/// What is needed to make checkouts, whatever the user's own git is set to.
class TreeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tests::prepare_git()) GTEST_SKIP() << "git is not installed";
  }

  void git(const std::vector<std::string>& words, const std::string& folder = ".") const {
    tests::git_in(scratch_.path() / folder, words);
  }

  Tree read(const Files& excludes = {}, const std::string& folder = {}) const {
    return read_tree(folder.empty() ? scratch_.path() : scratch_.path() / folder, excludes);
  }
  Files files(const Files& excludes = {}, const std::string& folder = {}) const {
    return read(excludes, folder).files;
  }
  std::string error(
      const std::string& folder = {}, void (*judge)(const Tree&) = [](const Tree&) {}) const {
    try {
      judge(read({}, folder));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  }

  tests::TemporaryFolder scratch_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(TreeTest, OutsideACheckoutEveryFileIsSent) {
  scratch_.write("b", "12345");
  scratch_.write("a/deep/x", "123");
  scratch_.write(".hidden");
  fs::create_directory(scratch_.path() / "empty");
  const Tree tree = read();
  EXPECT_EQ(tree.root, scratch_.path());
  EXPECT_EQ(tree.files, (Files{".hidden", "a/deep/x", "b"}));
  EXPECT_EQ(tree.bytes, 5U + 3U + 8U);
  EXPECT_EQ(tree.empty_folders, Files{"empty"});
  EXPECT_EQ(read({"empty/"}).empty_folders, Files());
}

TEST_F(TreeTest, WhatAnInterruptedPushToItLeftIsNotSent) {
  for (const char* name : {"a", ".~dtool~mark", ".~dtool~.123/tree/a", "deep/.~tmp~/a.XyZ"})
    scratch_.write(name);
  EXPECT_EQ(read().files, (Files{"a"}));
}

TEST_F(TreeTest, InACheckoutGitsAnswerCounts) {
  git({"init"});
  scratch_.write("tracked");
  scratch_.write("untracked");
  scratch_.write("ignored.log");
  scratch_.write("kept.log");
  scratch_.write("build/a.o");
  scratch_.write("sub/ignored-below");
  scratch_.write("sub/fine");
  scratch_.write(".gitignore", "*.log\n!kept.log\nbuild/\n");
  scratch_.write("sub/.gitignore", "ignored-below\n");
  git({"add", "tracked"});
  EXPECT_EQ(files(), (Files{".gitignore", "kept.log", "sub/.gitignore", "sub/fine", "tracked",
                            "untracked"}));
}

TEST_F(TreeTest, ATrackedFileIsSentThoughIgnoredAndNotOnceItIsGone) {
  git({"init"});
  scratch_.write("forced.log");
  scratch_.write("gone");
  scratch_.write("folder/gone");
  scratch_.write(".gitignore", "*.log\n");
  git({"add", "-f", "forced.log", "gone", "folder/gone"});
  fs::remove(scratch_.path() / "gone");
  fs::remove_all(scratch_.path() / "folder");
  EXPECT_EQ(files(), (Files{".gitignore", "forced.log"}));
}

TEST_F(TreeTest, AFolderOfACheckoutIsATreeOfItsOwn) {
  git({"init"});
  scratch_.write("outside");
  scratch_.write("part/a");
  scratch_.write("part/b.log");
  scratch_.write(".gitignore", "*.log\n");
  EXPECT_EQ(files({}, "part"), (Files{"a"}));
}

TEST_F(TreeTest, AConflictListsAFileOnce) {
  git({"init"});
  scratch_.write("a", "base\n");
  git({"add", "a"});
  git({"commit", "-m", "base"});
  git({"checkout", "-b", "other"});
  scratch_.write("a", "other\n");
  git({"commit", "-am", "other"});
  git({"checkout", "main"});
  scratch_.write("a", "main\n");
  git({"commit", "-am", "main"});
  EXPECT_NE(std::system(("git -C " + scratch_.path().native() +
                         " -c user.name=T -c user.email=t@example.org merge other > /dev/null 2>&1")
                            .c_str()),
            0);
  EXPECT_EQ(files(), (Files{"a"}));
}

TEST_F(TreeTest, EveryNameArrivesAsItIs) {
  const Files awkward = {"#hash",      "$HOME",           "'quote'",    "-rf",   ";semi",
                         "a b",        "back\\slash",     "new\nline",  "star*", "tab\there",
                         "\"double\"", "umlaut-\xc3\xa4", "latin-\xe4", "~"};
  for (const std::string& name : awkward) scratch_.write(name);
  Files sorted = awkward;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(files(), sorted);
  git({"init"});
  EXPECT_EQ(files(), sorted);
  git({"add", "--all"});
  EXPECT_EQ(files(), sorted);
}

TEST_F(TreeTest, SymbolicLinksAreNotFollowed) {
  scratch_.write("folder/a");
  fs::create_directory_symlink("folder", scratch_.path() / "link");
  fs::create_directory_symlink("..", scratch_.path() / "folder/loop");
  fs::create_symlink("nowhere", scratch_.path() / "dangling");
  const Files expected = {"dangling", "folder/a", "folder/loop", "link"};
  EXPECT_EQ(files(), expected);
  git({"init"});
  EXPECT_EQ(files(), expected);
}

TEST_F(TreeTest, AFolderThatBecameALinkIsThatLinkAlone) {
  git({"init"});
  scratch_.write("folder/a");
  git({"add", "folder/a"});
  fs::rename(scratch_.path() / "folder", scratch_.path() / "moved");
  fs::create_directory_symlink("moved", scratch_.path() / "folder");
  EXPECT_EQ(files(), (Files{"folder", "moved/a"}));
}

TEST_F(TreeTest, ARootThatIsALinkIsTheFolderItLeadsTo) {
  scratch_.write("real/a");
  fs::create_directory_symlink("real", scratch_.path() / "link");
  const Tree tree = read({}, "link");
  EXPECT_EQ(tree.root, scratch_.path() / "real");
  EXPECT_EQ(tree.files, (Files{"a"}));
}

TEST_F(TreeTest, RepositoriesInsideAreListedByGitToo) {
  scratch_.write("inner/.gitignore", "*.log\n");
  scratch_.write("inner/a");
  scratch_.write("inner/b.log");
  git({"init"}, "inner");
  const Files expected = {"inner/.gitignore", "inner/a", "top"};
  scratch_.write("top");
  EXPECT_EQ(files(), expected) << "in a folder";
  git({"init"});
  EXPECT_EQ(files(), expected) << "in a checkout";
}

TEST_F(TreeTest, EachLookIsAtTheFileOfThatPlaceWhereverARepositoryStands) {
  scratch_.write("inner/a", "1");
  git({"init"}, "inner");
  scratch_.write("inner-more", "22");  // git says `inner` before it, and `inner/a` comes after it
  scratch_.write("z", "333");
  git({"init"});
  const Tree tree = read();
  ASSERT_EQ(tree.files, (Files{"inner-more", "inner/a", "z"}));
  std::vector<std::uint64_t> sizes;
  for (const Look& look : tree.looks) sizes.push_back(look.size);
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{2, 1, 3}));
}

TEST_F(TreeTest, SubmodulesAreListedByGitToo) {
  scratch_.write("library/a");
  scratch_.write("library/.gitignore", "*.log\n");
  git({"init"}, "library");
  git({"add", "--all"}, "library");
  git({"commit", "-m", "library"}, "library");
  fs::create_directory(scratch_.path() / "project");
  git({"init"}, "project");
  git({"submodule", "add", (scratch_.path() / "library").native(), "lib"}, "project");
  scratch_.write("project/lib/untracked");
  scratch_.write("project/lib/x.log");
  EXPECT_EQ(files({}, "project"),
            (Files{".gitmodules", "lib/.gitignore", "lib/a", "lib/untracked"}));
  git({"submodule", "deinit", "-f", "lib"}, "project");
  EXPECT_EQ(files({}, "project"), (Files{".gitmodules"}));
}

TEST_F(TreeTest, ExcludedFilesStayHome) {
  scratch_.write("a.ckpt");
  scratch_.write("data/x");
  scratch_.write("src/a");
  scratch_.write("src/data/y");
  EXPECT_EQ(files({"*.ckpt", "/data"}), (Files{"src/a", "src/data/y"}));
  git({"init"});
  EXPECT_EQ(files({"*.ckpt", "data/"}), (Files{"src/a"}));
}

TEST_F(TreeTest, AnExcludedFolderIsNotEvenRead) {
  scratch_.write("a");
  scratch_.write("inner/.git", "broken");
  EXPECT_EQ(files({"inner"}), (Files{"a"}));
}

TEST_F(TreeTest, PipesAndSocketsAreSkippedAndNamed) {
  scratch_.write("a");
  ASSERT_EQ(::mkfifo((scratch_.path() / "pipe").c_str(), 0600), 0);
  const Tree tree = read();
  EXPECT_EQ(tree.files, (Files{"a"}));
  EXPECT_EQ(tree.skipped, (Files{"pipe"}));
}

TEST_F(TreeTest, AVariableOfAHookDoesNotMislead) {
  git({"init"});
  scratch_.write("a");
  ::setenv("GIT_DIR", "/nowhere", 1);
  const Files found = files();
  ::unsetenv("GIT_DIR");
  EXPECT_EQ(found, (Files{"a"}));
}

TEST_F(TreeTest, AWrongRootIsNamed) {
  EXPECT_CONTAINS(error("missing"), "/missing is not there");
  scratch_.write("file");
  EXPECT_CONTAINS(error("file"), "/file is not a folder");
  EXPECT_THROW(read_tree("relative", {}), std::runtime_error);
}

TEST_F(TreeTest, ATreeWithoutFilesIsAnErrorWhereFilesAreNeeded) {
  fs::create_directory(scratch_.path() / "empty");
  EXPECT_EQ(error("empty"), "no error");
  EXPECT_CONTAINS(error("empty", require_files), "/empty has no file to send");
  git({"init"});
  scratch_.write(".gitignore", "out\n");
  scratch_.write("out/a");
  EXPECT_CONTAINS(error("out", require_files), "git ignores what is in it");
}

TEST_F(TreeTest, ABrokenRepositoryIsAnErrorAndNotEverything) {
  scratch_.write(".git", "gitdir: /nowhere\n");
  scratch_.write("secret");
  EXPECT_CONTAINS(error(), "git cannot list the files of " + scratch_.path().native());
  EXPECT_CONTAINS(error(), "hint: ");
}

TEST_F(TreeTest, WithoutGitACheckoutIsAnError) {
  git({"init"});
  scratch_.write("a");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const std::string said = error();
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_CONTAINS(said, "git is not installed");
  EXPECT_CONTAINS(said, "hint: apt-get install git");
}

/// What read_tree says to a user who is not root; root may read everything.
std::string error_as_nobody(const fs::path& root) {
  int fds[2];
  if (::pipe(fds) != 0) return "no pipe";
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string said = "no error";
    try {
      if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(1);
      read_tree(root, {});
    } catch (const std::exception& error) {
      said = error.what();
    }
    const ssize_t written = ::write(fds[1], said.data(), said.size());
    ::_exit(written > 0 ? 0 : 1);
  }
  ::close(fds[1]);
  std::string said(4096, '\0');
  const ssize_t size = ::read(fds[0], said.data(), said.size());
  ::close(fds[0]);
  ::waitpid(pid, nullptr, 0);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return said;
}

void open_to_all(const fs::path& path) {
  fs::permissions(path, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
}

TEST_F(TreeTest, AnUnreadableFolderOrFileIsNamed) {
  scratch_.write("a");
  scratch_.write("closed/b");
  open_to_all(scratch_.path());
  fs::permissions(scratch_.path() / "closed", fs::perms::none);
  EXPECT_CONTAINS(error_as_nobody(scratch_.path()), "/closed: Permission denied");
  fs::permissions(scratch_.path() / "closed", fs::perms::owner_all);
  open_to_all(scratch_.path() / "closed");
  fs::permissions(scratch_.path() / "closed/b", fs::perms::none);
  EXPECT_CONTAINS(error_as_nobody(scratch_.path()), "/closed/b: Permission denied");
}

TEST_F(TreeTest, AnUnreadableFolderOfACheckoutIsNamed) {
  git({"init"});
  scratch_.write("a");
  scratch_.write("closed/b");
  open_to_all(scratch_.path());
  fs::permissions(scratch_.path() / "closed", fs::perms::none);
  if (::getuid() == 0) {
    ASSERT_EQ(std::system(("chown -R 65534 " + scratch_.path().native()).c_str()), 0);
  }
  const std::string said = error_as_nobody(scratch_.path());
  fs::permissions(scratch_.path() / "closed", fs::perms::owner_all);
  EXPECT_CONTAINS(said, "git cannot read a folder");
  EXPECT_CONTAINS(said, "closed/");
}

TEST_F(TreeTest, SomeoneElsesRepositoryIsRefusedWithAHint) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  git({"init"});
  scratch_.write("a");
  open_to_all(scratch_.path());
  const std::string said = error_as_nobody(scratch_.path());
  EXPECT_CONTAINS(said, "dubious ownership");
  EXPECT_CONTAINS(said, "hint: if you trust it: git config --global --add safe.directory");
}

}  // namespace
}  // namespace dtool::tree_sync
