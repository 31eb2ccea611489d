// SPDX-License-Identifier: MIT
// Where the current folder goes on the hosts of a run.
#include "cli/plan/code_tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/action.h"
#include "tests/unit/git.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

/// A home folder of the test's own, and a folder in which it stands.
class CodeTree : public testing::Test {
 protected:
  ~CodeTree() override { fs::current_path(before); }

  void stand_in(const fs::path& folder) {
    fs::create_directories(folder);
    fs::current_path(folder);
  }

  std::string remote_folder(const std::string& code_path = "") {
    return code_folder(ssh::parse_host("gpu01"), code_path);
  }

  const fs::path before = fs::current_path();
  const tests::TemporaryFolder home;
  const tests::TemporaryFolder elsewhere;
  const tests::TemporaryVariable variable{"HOME", home.path().string()};
};

TEST_F(CodeTree, InTheHomeFolderKeepsItsPlaceThere) {
  stand_in(home.path() / "work" / "my project");
  EXPECT_EQ(remote_folder(), "~/work/my project");
}

TEST_F(CodeTree, OutsideTheHomeFolderGoesByItsName) {
  stand_in(elsewhere.path() / "project");
  EXPECT_EQ(remote_folder(), "~/project");
}

TEST_F(CodeTree, BesideTheHomeFolderIsNotInIt) {
  const fs::path beside = home.path().string() + "-2";
  stand_in(beside);
  EXPECT_EQ(remote_folder(), "~/" + beside.filename().string());
  fs::current_path(before);
  fs::remove_all(beside);
}

TEST_F(CodeTree, BehindALinkIsWhereTheLinkLeads) {
  fs::create_directories(home.path() / "real");
  fs::create_directory_symlink(home.path() / "real", elsewhere.path() / "link");
  stand_in(elsewhere.path() / "link");
  EXPECT_EQ(remote_folder(), "~/real");
}

TEST_F(CodeTree, OnThisMachineStaysWhereItIs) {
  stand_in(elsewhere.path() / "project");
  EXPECT_EQ(code_folder(ssh::parse_host("local"), ""), fs::current_path().string());
}

TEST_F(CodeTree, GoesWhereItIsTold) {
  EXPECT_EQ(remote_folder("/data/code"), "/data/code");
  EXPECT_EQ(remote_folder("~/code"), "~/code");
  EXPECT_EQ(remote_folder("code"), "~/code");
  EXPECT_EQ(code_folder(ssh::parse_host("local"), "/data/code"), "/data/code");
}

TEST_F(CodeTree, TheHomeFolderIsNone) {
  stand_in(home.path());
  EXPECT_THROW(read_code_tree({.output_dir = "out"}), UsageError);
  stand_in("/");
  EXPECT_THROW(read_code_tree({.output_dir = "out"}), UsageError);
}

TEST_F(CodeTree, LeavesOutTheOutputFolder) {
  home.write("p/a.py", "");
  home.write("p/out/run/log", "");
  home.write("p/sub/out/kept", "");
  home.write("p/skip/x", "");
  stand_in(home.path() / "p");
  using Files = std::vector<std::string>;
  EXPECT_EQ(read_code_tree({.excludes = {"skip/"}, .output_dir = "./out/"}).files,
            (Files{"a.py", "sub/out/kept"}));
  for (const std::string outside : {"/data", "~/out", "../out", "."}) {
    EXPECT_EQ(read_code_tree({.excludes = {"skip/"}, .output_dir = outside}).files,
              (Files{"a.py", "out/run/log", "sub/out/kept"}))
        << outside;
  }
}

TEST_F(CodeTree, MayIncludeANameThatBeginsWithDots) {
  home.write("p/..data/x", "");
  stand_in(home.path() / "p");
  EXPECT_NO_THROW(read_code_tree({.includes = {"..data"}}));
  EXPECT_THROW(read_code_tree({.includes = {"../data"}}), UsageError);
}

TEST_F(CodeTree, LeavesOutFilesWithSecrets) {
  for (const char* file : {"p/a.py", "p/.env", "p/sub/.env", "p/sub/s[1]*", "p/sub/s1x"})
    home.write(file, "");
  stand_in(home.path() / "p");
  const std::vector<std::string> secrets = {".env", "./sub/../sub/s[1]*", "../outside"};
  EXPECT_EQ(read_code_tree({.output_dir = "out", .secrets = secrets}).files,
            (std::vector<std::string>{"a.py", "sub/.env", "sub/s1x"}));
}

TEST_F(CodeTree, IsToldWithItsLargestPartsIfItIsLarge) {
  const auto note = [] { return note_on_size(read_code_tree({.output_dir = "out"})); };
  if (!tests::prepare_git()) GTEST_SKIP() << "git is not there";
  stand_in(home.path() / "p");
  home.write("p/train.py", "pass");
  fs::resize_file(home.write("p/data/images", ""), 15'000'000);
  EXPECT_EQ(note(), "");
  fs::resize_file(home.write("p/old run/log", ""), 6'500'000);
  EXPECT_EQ(note(),
            "the code has 21.5 MB: data 15.0 MB, old run 6.5 MB, train.py 0.0 MB; data goes with "
            "--data, and --exclude leaves it out");
  tests::git_in(home.path() / "p", {"init"});
  EXPECT_EQ(note(), "") << "what git knows is code up to 100 MB";
  fs::resize_file(home.path() / "p/data/images", 95'000'000);
  EXPECT_EQ(note().substr(0, 44), "the code has 101.5 MB: data 95.0 MB, old run");
}

TEST_F(CodeTree, GetsANoteOnWhatDoesNotCount) {
  using Notes = std::vector<std::string>;
  const auto notes = [](const std::vector<std::string>& excludes) {
    return notes_on_tree(read_code_tree({.excludes = excludes, .output_dir = "out"}), excludes);
  };
  stand_in(home.path() / "p");
  home.write("p/train.py", "pass");
  home.write("p/skip/x", "");
  EXPECT_EQ(notes({"skip/"}), Notes{});
  EXPECT_EQ(notes({"skip/", "chekpoints/"}),
            Notes{"--exclude chekpoints/ matches nothing that would be sent"});
  home.write("p/.gitignore", "*.log");
  EXPECT_EQ(notes({}), Notes{"the .gitignore here does not count, since the folder is no git "
                             "checkout; git init makes it one"});
  if (!tests::prepare_git()) GTEST_SKIP() << "git is not there";
  tests::git_in(home.path() / "p", {"init"});
  EXPECT_EQ(notes({}), Notes{});
}

TEST_F(CodeTree, GetsANoteOnPointersOfGitLfs) {
  const auto notes = [] { return notes_on_tree(read_code_tree({.output_dir = "out"}), {}); };
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  stand_in(home.path() / "p");
  home.write("p/model.pt", pointer);
  EXPECT_TRUE(notes().empty()) << "nothing says that LFS is used";
  home.write("p/.gitattributes", "*.pt filter=lfs");
  EXPECT_EQ(notes(), std::vector<std::string>{"model.pt is a pointer of Git LFS in place of the "
                                              "file; git lfs pull brings it"});
  home.write("p/sub/other.pt", pointer);
  home.write("p/whole.pt", pointer + std::string(2000, 'x'));
  EXPECT_EQ(notes(), std::vector<std::string>{"model.pt and 1 others are pointers of Git LFS in "
                                              "place of the file; git lfs pull brings it"});
}

}  // namespace
}  // namespace dtool::cli
