// SPDX-License-Identifier: MIT
// A push to this machine, by parcels and by a package: what holds of both.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/sync/push/local_push.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class EveryWayTest : public LocalPushTest, public ::testing::WithParamInterface<Way> {
 protected:
  EveryWayTest() { way_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Push, EveryWayTest, ::testing::Values(Way::parcels, Way::package),
                         [](const auto& way) {
                           return way.param == Way::parcels ? "ByParcels" : "ByPackage";
                         });

TEST_P(EveryWayTest, FilesOfEveryNameArriveUnchanged) {
  Names names = {"#hash",
                 "$HOME/$(id)",
                 "'quote'",
                 "-rf",
                 ";semi",
                 "a b/c d",
                 "a\\b",
                 "new\nline",
                 "*",
                 "tab\t",
                 "\"double\"",
                 "umlaut-\xc3\xa4",
                 "~",
                 "latin-\xe4",
                 "[x]",
                 "!bang",
                 "a]b/@",
                 "{remote_shell}",
                 " ",
                 "trailing ",
                 "%s\\n",
                 "-",
                 "dtool-answer error=x"};
  for (const std::string& name : names) scratch_.write("tree/" + name, "content of " + name);
  const std::string folder = "~/it's $HOME; \"a\\b\"\n~ -x";
  EXPECT_OK(push_to(folder));
  std::ranges::sort(names);
  EXPECT_EQ(there(folder.substr(2)), names);
  for (const std::string& name : names) {
    EXPECT_EQ(scratch_.read("home/" + folder.substr(2) + "/" + name), "content of " + name);
  }
  EXPECT_EQ(pushed().sent.files, names.size());
  EXPECT_GT(told_.sent[0].bytes, 0U);
  if (way_ == Way::package) {
    EXPECT_EQ(told_.sent[0].all, told_.sent[0].bytes);
  }
  for (const std::string& name : names) fs::remove(scratch_.path() / "tree" / name);
  scratch_.write("tree/one");
  EXPECT_OK(push_to(folder));
  EXPECT_EQ(there(folder.substr(2)), (Names{"one"})) << "and go again";
}

TEST_P(EveryWayTest, LinksPermissionsAndTimesAreKept) {
  scratch_.write("tree/run.sh");
  scratch_.write("tree/plain");
  fs::permissions(scratch_.path() / "tree/run.sh", static_cast<fs::perms>(0750));
  fs::permissions(scratch_.path() / "tree/plain", static_cast<fs::perms>(0644));
  fs::create_symlink("plain", scratch_.path() / "tree/link");
  fs::create_symlink("/nowhere", scratch_.path() / "tree/dangling");
  const auto time = fs::last_write_time(scratch_.path() / "tree/plain") - std::chrono::hours(48);
  fs::last_write_time(scratch_.path() / "tree/plain", time);
  EXPECT_OK(push_to("~/code"));
  const fs::path code = scratch_.path() / "home/code";
  EXPECT_EQ(fs::status(code / "run.sh").permissions(), static_cast<fs::perms>(0750));
  EXPECT_EQ(fs::status(code / "plain").permissions(), static_cast<fs::perms>(0644));
  EXPECT_EQ(fs::read_symlink(code / "link"), "plain");
  EXPECT_EQ(fs::read_symlink(code / "dangling"), "/nowhere");
  EXPECT_EQ(fs::last_write_time(code / "plain"), time);
}

TEST_P(EveryWayTest, BitsThatActForAFilesOwnerStayHere) {
  using fs::perms;
  const perms special = perms::set_uid | perms::set_gid | perms::sticky_bit;
  scratch_.write("tree/sub/program");
  fs::permissions(scratch_.path() / "tree/sub/program", special | perms::owner_all);
  fs::permissions(scratch_.path() / "tree/sub", special | perms::owner_all);
  EXPECT_OK(push_to("~/code"));
  const fs::path code = scratch_.path() / "home/code";
  EXPECT_EQ(fs::status(code / "sub/program").permissions(), perms::owner_all);
  EXPECT_EQ(fs::status(code / "sub").permissions(), perms::owner_all);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 0U) << "and they make no difference";
}

TEST_P(EveryWayTest, TheFoldersOwnPermissionsStay) {
  scratch_.write("tree/a");
  fs::permissions(scratch_.path() / "tree", static_cast<fs::perms>(0777));
  fs::permissions(scratch_.path() / "home", static_cast<fs::perms>(0700));
  EXPECT_OK(push_to("~"));
  EXPECT_EQ(fs::status(scratch_.path() / "home").permissions(), static_cast<fs::perms>(0700))
      << "sshd refuses keys in a home that others can write";
}

TEST_P(EveryWayTest, ASecondPushSendsNothing) {
  scratch_.write("tree/a");
  scratch_.write("tree/b/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 2U);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 0U);
  EXPECT_EQ(pushed().removed, 0U);
}

TEST_P(EveryWayTest, AnEditOfTheSameSizeWithinASecondIsSent) {
  scratch_.write("tree/a", "lr = 1");
  EXPECT_OK(push_to("~/code"));
  const auto time = fs::last_write_time(scratch_.path() / "tree/a");
  scratch_.write("tree/a", "lr = 2");
  fs::last_write_time(scratch_.path() / "tree/a", time + std::chrono::nanoseconds(1));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(scratch_.read("home/code/a"), "lr = 2");
}

TEST_P(EveryWayTest, WhatSomebodyChangedThereIsMendedWhenTheUserSaysSo) {
  for (const char* name : {"tree/edited", "tree/deleted", "tree/linked", "tree/sub/moved"})
    scratch_.write(name, "sent");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/edited", "by hand");
  fs::remove(scratch_.path() / "home/code/deleted");
  fs::remove(scratch_.path() / "home/code/linked");
  fs::create_symlink("edited", scratch_.path() / "home/code/linked");
  fs::rename(scratch_.path() / "home/code/sub", scratch_.path() / "home/code/elsewhere");
  const std::string refusal = push_to("~/code").error;
  EXPECT_EQ(refusal,
            "2 files in ~/code are not as dtool sent them and differ from the code tree: "
            "edited, linked");
  EXPECT_EQ(scratch_.read("home/code/edited"), "by hand");
  EXPECT_EQ(push_to("~/code").error, refusal) << "the refusal does not make them dtool's";
  EXPECT_OK(push_to("~/code", "tree", Foreign::overwrite));
  EXPECT_EQ(pushed().sent.files, 4U);
  for (const char* name : {"edited", "deleted", "linked", "sub/moved"})
    EXPECT_EQ(scratch_.read(std::string("home/code/") + name), "sent") << name;
  EXPECT_FALSE(fs::is_symlink(scratch_.path() / "home/code/linked"));
}

TEST_P(EveryWayTest, WhatSomebodyDeletedOrTouchedThereIsMended) {
  for (const char* name : {"tree/touched", "tree/deleted", "tree/as the tree's", "tree/sub/moved"})
    scratch_.write(name, "sent");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/touched", "sent");
  scratch_.write("home/code/as the tree's", "later");
  scratch_.write("tree/as the tree's", "later");
  fs::remove(scratch_.path() / "home/code/deleted");
  fs::rename(scratch_.path() / "home/code/sub", scratch_.path() / "home/code/elsewhere");
  EXPECT_OK(push_to("~/code"));
  for (const char* name : {"touched", "deleted", "sub/moved"})
    EXPECT_EQ(scratch_.read(std::string("home/code/") + name), "sent") << name;
}

TEST_P(EveryWayTest, WhatSomebodyChangedThereIsNotDeletedUnasked) {
  scratch_.write("tree/a");
  scratch_.write("tree/gone", "sent");
  scratch_.write("tree/untouched", "sent");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/gone", "by hand");
  fs::remove(scratch_.path() / "tree/gone");
  fs::remove(scratch_.path() / "tree/untouched");
  EXPECT_EQ(push_to("~/code").error,
            "a file in ~/code is not as dtool sent it and differs from the code tree: gone");
  EXPECT_EQ(scratch_.read("home/code/gone"), "by hand");
  EXPECT_EQ(scratch_.read("home/code/untouched"), "sent") << "the host was left as it was";
  EXPECT_OK(push_to("~/code", "tree", Foreign::overwrite));
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_P(EveryWayTest, AFoldersModeIsKeptAndChangesAlone) {
  scratch_.write("tree/sub/a");
  fs::permissions(scratch_.path() / "tree/sub", static_cast<fs::perms>(0750));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(fs::status(scratch_.path() / "home/code/sub").permissions(),
            static_cast<fs::perms>(0750));
  fs::permissions(scratch_.path() / "tree/sub", static_cast<fs::perms>(0711));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(fs::status(scratch_.path() / "home/code/sub").permissions(),
            static_cast<fs::perms>(0711));
}

TEST_P(EveryWayTest, NothingOfThePushStays) {
  scratch_.write("tree/a");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "b"}));
  for (const auto& entry : fs::directory_iterator(scratch_.path() / "home/.dtool/trees"))
    EXPECT_FALSE(entry.is_directory()) << entry;
}

TEST_P(EveryWayTest, WhatTheTreeNoLongerHasGoesAndNothingElse) {
  scratch_.write("tree/a");
  scratch_.write("tree/old/deep/b");
  scratch_.write("tree/shared/c");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/checkpoint.pt");
  scratch_.write("home/code/shared/results");
  fs::create_directory(scratch_.path() / "home/code/empty");
  fs::remove_all(scratch_.path() / "tree/old");
  fs::remove_all(scratch_.path() / "tree/shared");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "checkpoint.pt", "empty/", "shared/results"}));
  EXPECT_EQ(pushed().removed, 2U);
}

TEST_P(EveryWayTest, AFolderHasOneListUnderAllItsNames) {
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  fs::remove(scratch_.path() / "tree/b");
  EXPECT_OK(push_to((scratch_.path() / "home/./code/").native()));
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_P(EveryWayTest, AFileAndAFolderChangePlaces) {
  scratch_.write("tree/x/y/file");
  scratch_.write("tree/z");
  EXPECT_OK(push_to("~/code"));
  fs::remove_all(scratch_.path() / "tree");
  scratch_.write("tree/x", "now a file");
  scratch_.write("tree/z/deep/file");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"x", "z/deep/file"}));
  fs::remove_all(scratch_.path() / "tree/z");
  fs::create_directory_symlink("/usr", scratch_.path() / "tree/z");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"x", "z"}));
}

TEST_P(EveryWayTest, AForeignFileInAFolderThatIsToBecomeAFileStays) {
  scratch_.write("tree/x/sent");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/x/foreign");
  fs::remove_all(scratch_.path() / "tree/x");
  scratch_.write("tree/x", "now a file");
  for (const Foreign foreign : {Foreign::refuse, Foreign::overwrite}) {
    const auto result = push_to("~/code", "tree", foreign);
    EXPECT_EQ(result.error, "~/code/x is a folder, and a file is to be sent there");
    EXPECT_NE(result.hint.find("move it away"), std::string::npos) << result.hint;
    EXPECT_EQ(there(), (Names{"x/foreign", "x/sent"})) << "nothing was touched";
  }
}

TEST_P(EveryWayTest, NothingIsDeletedThroughALink) {
  scratch_.write("tree/a");
  scratch_.write("tree/data/x");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("outside/x", "precious");
  fs::remove_all(scratch_.path() / "home/code/data");
  fs::create_directory_symlink(scratch_.path() / "outside", scratch_.path() / "home/code/data");
  fs::remove_all(scratch_.path() / "tree/data");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(scratch_.read("outside/x"), "precious");
}

TEST_P(EveryWayTest, AListThatNamesFilesOutsideDeletesNone) {
  scratch_.write("tree/a");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("precious");
  scratch_.write("home/precious");
  const std::string absolute = (scratch_.path() / "precious").native();
  std::string list;
  for (const std::string& name :
       {std::string("../precious"), absolute, std::string("b/../../precious"), std::string(),
        std::string("."), std::string(".."), std::string("a/"), std::string("-rf")}) {
    list += name + '\0';
  }
  scratch_.write(manifest(), list + "unsorted" + '\0' + "a");
  scratch_.write("tree/b/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_TRUE(fs::exists(scratch_.path() / "precious"));
  EXPECT_TRUE(fs::exists(scratch_.path() / "home/precious"));
  EXPECT_EQ(there(), (Names{"a", "b/c"}));
}

TEST_P(EveryWayTest, AFolderIsNeverSentOntoItself) {
  scratch_.write("home/code/a");
  scratch_.write("home/code/b");
  EXPECT_OK(push_to("~/code", "home/code"));
  EXPECT_TRUE(pushed().is_the_tree);
  fs::create_directory_symlink("code", scratch_.path() / "home/link");
  EXPECT_OK(push_to("~/link", "home/code"));
  EXPECT_TRUE(pushed().is_the_tree);
  EXPECT_FALSE(fs::exists(scratch_.path() / "home/.dtool/trees"));
}

TEST_P(EveryWayTest, AFolderThatCannotBeMadeIsNamed) {
  scratch_.write("tree/a");
  scratch_.write("home/file");
  const auto result = push_to("~/file/code");
  EXPECT_TRUE(result.error.ends_with("/home/file is there, but is not a folder")) << result.error;
}

}  // namespace
}  // namespace dtool::tree_sync
