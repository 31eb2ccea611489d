// SPDX-License-Identifier: MIT
// What is below a folder is reached over no link, by whatever way the kernel offers.
#include "sync/open_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Open = ssh::OwnedFd (*)(int, const std::string&, int);

class OpenBelowTest : public testing::TestWithParam<Open> {
 protected:
  void SetUp() override {
    scratch_.write("folder/sub/file", "in the folder");
    scratch_.write("private/file", "private");
    fs::create_symlink("sub", scratch_.path() / "folder/to_sub");
    fs::create_symlink("../private", scratch_.path() / "folder/out");
    fs::create_symlink("../../private/file", scratch_.path() / "folder/sub/link");
  }

  /// What is in the file; empty if it was not opened.
  std::string read(const std::string& name) const {
    const ssh::OwnedFd folder(::open((scratch_.path() / "folder").c_str(), O_PATH | O_DIRECTORY));
    const ssh::OwnedFd file = GetParam()(folder.get(), name, O_RDONLY | O_NONBLOCK);
    std::string text(100, '\0');
    const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
  }

  tests::TemporaryFolder scratch_;
};

INSTANTIATE_TEST_SUITE_P(EveryKernel, OpenBelowTest,
                         testing::Values(&open_below, &open_step_by_step));

TEST_P(OpenBelowTest, AFileOfTheFolderIsOpened) {
  EXPECT_EQ(read("sub/file"), "in the folder");
}

TEST_P(OpenBelowTest, NoNameLeadsOverALinkOrOut) {
  const std::string absolute = (scratch_.path() / "private/file").native();
  for (const std::string& name :
       {std::string("sub/link"), std::string("to_sub/file"), std::string("out/file"),
        std::string("../private/file"), absolute})
    EXPECT_EQ(read(name), "") << name;
}

TEST(OpenFolder, WhatIsBehindALinkIsNotLookedAt) {
  tests::TemporaryFolder scratch;
  scratch.write("folder/sub/b", "");
  scratch.write("private/file", "");
  fs::create_directory_symlink("../private", scratch.path() / "folder/out");
  const OpenFolder folder(scratch.path() / "folder");
  EXPECT_TRUE(folder.look_at("sub/b"));
  EXPECT_TRUE(folder.look_at("out")) << "the link itself";
  EXPECT_EQ(folder.target_of("out"), "../private");
  EXPECT_FALSE(folder.look_at("out/file"));
  EXPECT_FALSE(folder.may_read("out/file"));
  EXPECT_FALSE(folder.target_of("out/file"));
  EXPECT_FALSE(folder.names_in("out"));
  EXPECT_EQ(folder.names_in(""), (std::vector<std::string>{"out", "sub/"}));
}

}  // namespace
}  // namespace dtool::tree_sync
