// SPDX-License-Identifier: MIT
// Where the current folder goes on the hosts of a run.
#include "cli/run/code_tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/action.h"
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

TEST_F(CodeTree, LeavesOutFilesWithSecrets) {
  for (const char* file : {"p/a.py", "p/.env", "p/sub/.env", "p/sub/s[1]*", "p/sub/s1x"})
    home.write(file, "");
  stand_in(home.path() / "p");
  const std::vector<std::string> secrets = {".env", "./sub/../sub/s[1]*", "../outside"};
  EXPECT_EQ(read_code_tree({.output_dir = "out", .secrets = secrets}).files,
            (std::vector<std::string>{"a.py", "sub/.env", "sub/s1x"}));
}

}  // namespace
}  // namespace dtool::cli
