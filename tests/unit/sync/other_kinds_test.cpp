// SPDX-License-Identifier: MIT
// A host's own things where something of another kind is sent: one table, for every way in which
// bytes go to hosts. Nothing of the host's is replaced, and nothing that it lacks is put beside it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <string>
#include <vector>

#include "sync/copy/copying.h"
#include "tests/unit/sync/push/local_push.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

enum class There { nothing, file, link, dangling, pipe, empty_folder, folder };
enum class Coming { file, link, folder };
enum class How { rsync, package, later_rsync, later_package, copy };

/// What becomes of a host's own thing: nothing is in the way; it is replaced where the user says
/// so; or it stays, whatever the user says.
enum class Then { taken, asked, never };

struct Row {
  There there;
  std::array<Then, 3> then;  ///< where a file, a link, a folder is sent
};
constexpr std::array<Row, 7> kTable = {{
    {There::nothing, {Then::taken, Then::taken, Then::taken}},
    {There::file, {Then::asked, Then::asked, Then::never}},
    {There::link, {Then::asked, Then::asked, Then::never}},
    {There::dangling, {Then::asked, Then::asked, Then::never}},
    {There::pipe, {Then::asked, Then::asked, Then::never}},
    {There::empty_folder, {Then::never, Then::never, Then::taken}},
    {There::folder, {Then::never, Then::never, Then::taken}},
}};

class OtherKindsTest : public LocalPushTest {
 protected:
  fs::path here(const std::string& name) const { return scratch_.path() / "tree" / name; }
  fs::path code(const std::string& name) const { return scratch_.path() / "home/code" / name; }

  void put_there(There there) {
    fs::create_directories(scratch_.path() / "home/code");
    scratch_.write("home/scratch/theirs", "precious");
    const fs::path x = code("x");
    if (there == There::file) scratch_.write("home/code/x", "theirs");
    if (there == There::link) fs::create_directory_symlink(scratch_.path() / "home/scratch", x);
    if (there == There::dangling) fs::create_symlink("gone", x);
    if (there == There::pipe) {
      ASSERT_EQ(::mkfifo(x.c_str(), 0600), 0);
    }
    if (there == There::empty_folder) fs::create_directory(x);
    if (there == There::folder) scratch_.write("home/code/x/theirs", "theirs");
  }

  void put_here(Coming sent) {
    if (sent == Coming::file) scratch_.write("tree/x", "sent");
    if (sent == Coming::link) fs::create_symlink("a", here("x"));
    if (sent == Coming::folder) scratch_.write("tree/x/y/sent", "sent");
    scratch_.write("tree/beside", "sent");
  }

  bool has_come(Coming sent) const {
    if (sent == Coming::file)
      return fs::is_regular_file(fs::symlink_status(code("x"))) &&
             scratch_.read("home/code/x") == "sent";
    if (sent == Coming::link)
      return fs::is_symlink(code("x")) && fs::read_symlink(code("x")) == "a";
    return fs::is_directory(fs::symlink_status(code("x"))) &&
           scratch_.read("home/code/x/y/sent") == "sent";
  }

  /// Every name below the folder, with its kind and where it leads.
  std::vector<std::string> all_there() const {
    std::vector<std::string> all;
    for (const auto& each : fs::recursive_directory_iterator(scratch_.path() / "home/code")) {
      std::string text = each.path().native();
      text += ' ' + std::to_string(static_cast<int>(each.symlink_status().type()));
      if (each.is_symlink()) text += fs::read_symlink(each).native();
      all.push_back(std::move(text));
    }
    std::ranges::sort(all);
    return all;
  }

  /// What comes before the trial: earlier trees that dtool sent itself.
  void send_before(How how) {
    if (how != How::later_rsync && how != How::later_package) return;
    way_ = Way::package;
    scratch_.write("tree/a", "sent before");
    EXPECT_OK(push_to("~/code"));
    if (how == How::later_rsync) fs::remove(code("a"));  // so the host has no tree untouched
  }

  ssh::HostResult send(How how, Foreign foreign) {
    if (how == How::copy) return copy(foreign);
    way_ = how == How::rsync ? Way::parcels : Way::package;
    return push_to("~/code", "tree", foreign);
  }

  ssh::HostResult copy(Foreign foreign) {
    CopyList list = list_sources({here("").native()}, {});
    Elsewhere elsewhere;
    ssh::Events nobody;
    Copying copying(elsewhere, list, "~/code", "here", nobody, foreign);
    copying.ask();
    CopyHost host = copying.hosts().at(0);
    if (!host.result.ok()) return host.result;
    if (!host.reply.blocked.empty()) {
      host.result.exit_code = 1;
      host.result.error = host.reply.blocked.front();
      return host.result;
    }
    copying.send();
    return copying.hosts().at(0).result;
  }

  void try_it(There there, Coming sent, Then then, How how) {
    for (const char* name : {"home", "tree"}) fs::remove_all(scratch_.path() / name);
    fs::create_directory(scratch_.path() / "home");
    scratch_.write("tree/a", "a");
    send_before(how);
    put_there(there);
    put_here(sent);
    const auto before = all_there();
    ssh::HostResult result = send(how, Foreign::refuse);
    EXPECT_EQ(result.ok(), then == Then::taken) << result.error;
    if (then != Then::taken) {
      EXPECT_EQ(all_there(), before) << "it is all as it was";
      EXPECT_NE(result.error.find('x'), std::string::npos) << result.error;
      result = send(how, Foreign::overwrite);
      EXPECT_EQ(result.ok(), then == Then::asked) << result.error;
    }
    if (then == Then::never) {
      EXPECT_EQ(all_there(), before) << "no word replaces a folder, or something by a folder";
      EXPECT_NE(result.error.find("/x is "), std::string::npos) << result.error;
      return;
    }
    EXPECT_TRUE(has_come(sent));
    EXPECT_EQ(scratch_.read("home/code/beside"), "sent");
    if (there == There::folder) {
      EXPECT_EQ(scratch_.read("home/code/x/theirs"), "theirs");
    }
    EXPECT_EQ(scratch_.read("home/scratch/theirs"), "precious") << "nothing is written over a link";
    EXPECT_FALSE(fs::exists(scratch_.path() / "home/scratch/y"));
  }
};

std::string name_of(const ::testing::TestParamInfo<How>& how) {
  switch (how.param) {
    case How::rsync:
      return "ByRsync";
    case How::package:
      return "ByPackage";
    case How::later_rsync:
      return "LaterByRsync";
    case How::later_package:
      return "LaterByPackage";
    case How::copy:
      return "ByCopy";
  }
  return "";
}

class OtherKindsEveryWayTest : public OtherKindsTest, public ::testing::WithParamInterface<How> {};
INSTANTIATE_TEST_SUITE_P(Send, OtherKindsEveryWayTest,
                         ::testing::Values(How::rsync, How::package, How::later_rsync,
                                           How::later_package, How::copy),
                         name_of);

TEST_P(OtherKindsEveryWayTest, WhatAHostHasOfItsOwnIsNotReplacedByAnotherKind) {
  for (const Row& row : kTable) {
    for (std::size_t sent = 0; sent < row.then.size(); ++sent) {
      SCOPED_TRACE("there " + std::to_string(static_cast<int>(row.there)) + ", sent " +
                   std::to_string(sent));
      try_it(row.there, static_cast<Coming>(sent), row.then.at(sent), GetParam());
    }
  }
}

/// A folder that came from dtool is one, too, where its place was taken meanwhile.
TEST_P(OtherKindsEveryWayTest, ALinkInThePlaceOfAFolderThatWasSentStays) {
  for (const bool is_changed : {false, true}) {
    for (const char* name : {"home", "tree"}) fs::remove_all(scratch_.path() / name);
    fs::create_directory(scratch_.path() / "home");
    scratch_.write("tree/a", "a");
    scratch_.write("tree/data/.gitkeep");
    scratch_.write("home/scratch/theirs", "precious");
    ASSERT_TRUE(send(GetParam(), Foreign::refuse).ok());
    fs::remove_all(code("data"));
    fs::create_directory_symlink(scratch_.path() / "home/scratch", code("data"));
    if (is_changed) scratch_.write("tree/a", "another");
    const auto result = send(GetParam(), Foreign::refuse);
    EXPECT_FALSE(result.ok()) << "changed: " << is_changed;
    EXPECT_NE(result.error.find("data"), std::string::npos) << result.error;
    EXPECT_TRUE(fs::is_symlink(code("data")));
    EXPECT_EQ(scratch_.read("home/code/a"), "a");
  }
}

TEST_P(OtherKindsEveryWayTest, WhatWasSentIsReplacedByWhatIsNewHereAndWhatWasEditedThereIsNot) {
  scratch_.write("tree/a", "one");
  fs::create_symlink("a", here("link"));
  ASSERT_TRUE(send(GetParam(), Foreign::refuse).ok());
  scratch_.write("tree/a", "newer");
  fs::remove(here("link"));
  fs::create_symlink("b", here("link"));
  EXPECT_OK(send(GetParam(), Foreign::refuse));
  EXPECT_EQ(scratch_.read("home/code/a"), "newer");
  EXPECT_EQ(fs::read_symlink(code("link")), "b");
  scratch_.write("home/code/a", "by hand");
  scratch_.write("tree/a", "newest");
  scratch_.write("tree/beside", "sent");
  EXPECT_FALSE(send(GetParam(), Foreign::refuse).ok());
  EXPECT_EQ(scratch_.read("home/code/a"), "by hand");
  EXPECT_FALSE(fs::exists(code("beside"))) << "nothing was sent";
  EXPECT_OK(send(GetParam(), Foreign::overwrite));
  EXPECT_EQ(scratch_.read("home/code/a"), "newest");
  EXPECT_EQ(scratch_.read("home/code/beside"), "sent");
}

}  // namespace
}  // namespace dtool::tree_sync
