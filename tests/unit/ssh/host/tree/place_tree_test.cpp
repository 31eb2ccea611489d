// SPDX-License-Identifier: MIT
#include "ssh/host/tree/answer_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/placing.h"
#include "ssh/host/tree/tree_change.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/message.h"
#include "tests/unit/disk_steps.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

class PlaceTree : public testing::Test {
 protected:
  /// As the question leaves the folder, and parcels fill it.
  void bring(const std::string& listing) {
    tree_ = to_hex(sha256(listing));
    scratch_.write(aside() + kListing, listing);
    fs::permissions(scratch_.path() / "code" / kComing, fs::perms::owner_all);
    TreeFolder folder("~/code");
    folder.take_lock();
    folder.set_newest(tree_);
  }
  static std::string aside() { return "code/"s + kComing + "/"; }
  static std::string line(const std::string& name, const std::string& content, int mode = 644) {
    return name + '\0' + to_hex(sha256(content)).substr(0, 32) + " " +
           std::to_string(content.size()) + " 1000000000.1234567890 " + std::to_string(mode) + " " +
           '\0';
  }
  PlaceReply place(bool refuses_foreign = true) {
    PlaceRequest request;
    request.folder = "~/code";
    request.tree = tree_;
    request.refuses_foreign = refuses_foreign;
    request.parcels = parcels_;
    return place_tree(request);
  }

  /// Whoever holds the lock keeps the placing waiting, and lets it go on.
  template <typename Holder>
  void expect_wait_for(std::optional<Holder>& holder) {
    std::atomic<bool> has_ended = false;
    std::thread placing([&] {
      place();
      has_ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(has_ended);
    holder.reset();
    placing.join();
  }

  const CopyPlace parcels_{"~/code/"s + kComing, "tree.push", 1, 0, "", ""};

  std::string tree_;
  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path()};
};

TEST_F(PlaceTree, WaitsForTheOneThatHasTheFolder) {
  bring(line("a", "one"));
  std::optional<TreeFolder> other(std::in_place, "~/code");
  other->take_lock();
  expect_wait_for(other);
}

// As where one host of several that share the folder has put the tree in its place.
TEST_F(PlaceTree, AParcelComesWhereTheFolderWasDeletedMeanwhile) {
  std::optional<CopyFolder> first(std::in_place, parcels_);
  CopyPlace another = parcels_;
  another.copy = "tree.other";
  std::thread taking([&] {
    CopyFolder second(another);
    EXPECT_TRUE(fs::exists(second.path()));
    EXPECT_TRUE(fs::exists(second.path() + "/" + copy_aside() + "/owner"));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  fs::remove_all(scratch_.path() / "code" / kComing);
  first.reset();
  taking.join();
}

TEST_F(PlaceTree, IsRefusedWhereAnotherTreeIsBeingSent) {
  bring(line("a", "one"));
  const std::string first = tree_;
  bring(line("a", "two"));
  tree_ = first;
  EXPECT_THROW(place(), Refused);
}

TEST_F(PlaceTree, AnotherTreesListingCountsAsNone) {
  bring(line("a", "one"));
  scratch_.write(aside() + kListing, line("b", "two"));
  EXPECT_TRUE(place().lacks_listing);
}

TEST_F(PlaceTree, AFolderThatOthersCouldWriteIntoIsNotUsed) {
  bring(line("a", "one"));
  fs::permissions(scratch_.path() / "code" / kComing, fs::perms::all);
  EXPECT_THROW(place(), Refused);
}

TEST_F(PlaceTree, WaitsForAParcelThatIsBeingTaken) {
  bring(line("a", "one"));
  CopyPlace another = parcels_;
  another.copy = "other.push";
  std::optional<CopyFolder> taking(std::in_place, another);
  expect_wait_for(taking);
}

/// The code folder while it is looked at, and what is to be put there.
class PlacingTest : public PlaceTree {
 protected:
  PlacingTest() {
    scratch_.write("code/a", "one");
    scratch_.write("code/b", "old");
    scratch_.write("code/gone", "old");
    folder_.take_lock();
    folder_.write_manifest({"a", "b", "gone"});
    FileNames stamps;
    for (const char* name : {"a", "b", "gone"})
      stamps.push_back(stamp_of(*folder_.inside().look(name), name));
    folder_.end_change("old", {"a", "b", "gone"}, stamps);
    EXPECT_EQ(folder_.find_whole(), "old");
    scratch_.write(aside() + "b", "two");
  }
  PlaceReply look() {
    PlaceReply reply;
    placing_.look(reply);
    return reply;
  }
  void edit(const std::string& name) { scratch_.write("code/" + name, "by hand"); }

  const bool is_brought_ = [this] {
    bring(line("a", "one") + line("b", "two"));
    return true;
  }();
  TreeFolder folder_{"~/code"};
  const TreeChange change_ = read_listing(line("a", "one") + line("b", "two"));
  Aside aside_{(scratch_.path() / "code" / kComing).native(), false};
  Placing placing_{folder_, change_, aside_, "", true};
};

TEST_F(PlacingTest, WhatIsUntouchedIsReplacedAndDeleted) {
  EXPECT_EQ(look().foreign, 0);
  EXPECT_EQ(placing_.put("new"), 1U);
  EXPECT_EQ(scratch_.read("code/b"), "two");
  EXPECT_FALSE(fs::exists(scratch_.path() / "code/gone"));
  EXPECT_EQ(folder_.find_whole(), "new");
}

// While a change came that may take minutes.
TEST_F(PlacingTest, WhatIsEditedBeforeItIsLookedAtIsForeign) {
  for (const char* name : {"b", "gone"}) edit(name);
  EXPECT_EQ(look().first, (std::vector<std::string>{"gone", "b"}));
}

TEST_F(PlacingTest, WhatIsEditedAfterItWasLookedAtStays) {
  for (const char* name : {"a", "b", "gone"}) {
    const std::string before = scratch_.read("code/"s + name);
    PlaceReply reply;
    Placing placing(folder_, change_, aside_, "", true);
    placing.look(reply);
    EXPECT_EQ(reply.foreign, 0) << name;
    edit(name);
    EXPECT_THROW(placing.put("new"), Refused) << name;
    EXPECT_EQ(scratch_.read("code/"s + name), "by hand");
    EXPECT_EQ(folder_.find_whole(), "") << name;
    fs::remove(scratch_.path() / "code" / name);
    scratch_.write("code/"s + name, before);
    FileNames stamps;
    for (const char* each : {"a", "b", "gone"})
      stamps.push_back(stamp_of(*folder_.inside().look(each), each));
    folder_.end_change("old", {"a", "b", "gone"}, stamps);
    EXPECT_EQ(folder_.find_whole(), "old");
  }
}

TEST_F(PlacingTest, WhatIsChangedAsideAfterItWasLookedAtIsNotTaken) {
  look();
  scratch_.write(aside() + "b", "bad");
  EXPECT_THROW(placing_.put("new"), std::runtime_error);
  EXPECT_EQ(scratch_.read("code/b"), "old");
  EXPECT_EQ(folder_.find_whole(), "");
}

TEST_F(PlaceTree, WhatIsThereWithTheRightContentStaysAndGetsItsModeAndTime) {
  bring(line("a", "one", 750) + line("b", "two"));
  scratch_.write("code/a", "one");
  scratch_.write("code/b", "TWO");
  PlaceReply reply = place();
  EXPECT_EQ(reply.first, std::vector<std::string>{"b"});
  EXPECT_EQ(scratch_.read("code/b"), "TWO");
  EXPECT_FALSE(fs::exists(scratch_.path() / aside())) << "nothing of it stays";
  bring(line("a", "one", 750) + line("b", "two"));
  reply = place(false);
  ASSERT_EQ(reply.lacks.size(), 1U);
  EXPECT_EQ(reply.lacks[0].first, 1U);
  EXPECT_EQ(reply.lacks[0].count, 1U);
  fs::remove(scratch_.path() / "code/b");
  bring(line("a", "one", 750));
  EXPECT_TRUE(place().is_whole);
  struct stat file {};
  ASSERT_EQ(::stat((scratch_.path() / "code/a").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0750U);
  EXPECT_EQ(file.st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(file.st_mtim.tv_nsec, 123'456'789);
}

TEST_F(PlaceTree, AFileWhoseContentIsNotKnownComesAnew) {
  bring("a\0 3 1000000000.1234567890 644 \0"s);  // the launcher could not read it
  scratch_.write("code/a", "one");
  EXPECT_EQ(place(false).lacks.size(), 1U);
}

TEST_F(PlaceTree, PartsOfFilesAreToldWithTheirBytes) {
  const std::string content(100, 'x');
  bring(line("a", "one") + line("b", content));
  CopyEntry entry{"b", 0644, 1'000'000'000, 123'456'789, "", 100, ""};
  const std::string parts = aside() + copy_aside() + "/parts/";
  scratch_.write(parts + part_name(entry), "forty");
  fs::permissions(scratch_.path() / aside() / copy_aside(), fs::perms::owner_all);
  const PlaceReply reply = place();
  ASSERT_EQ(reply.lacks.size(), 1U);
  EXPECT_EQ(reply.lacks[0].count, 2U);
  ASSERT_EQ(reply.parts.size(), 1U);
  EXPECT_EQ(reply.parts[0].entry, 1U);
  EXPECT_EQ(reply.parts[0].bytes, 5U);
}

TEST_F(PlaceTree, AListingThatIsNoneIsRefused) {
  for (const std::string& listing :
       {"a"s, "a\0"s, "a\0x"s, "a\0x 1 2.3 644"s, "a\0x one 2.3 644 \0"s, "a\0x 1 2 644 \0"s,
        line("b", "one") + line("a", "one"), line("a", "one") + line("a", "one")}) {
    bring(listing);
    EXPECT_THROW(place(), BadMessage) << testing::PrintToString(listing);
  }
}

TEST_F(PlaceTree, NamesThatLeadOutBringNothingThere) {
  scratch_.write("precious", "precious");
  for (const char* name : {"../precious", "/etc/passwd", "sub/../../precious", "..", "."}) {
    bring(line(name, "other"));
    try {
      EXPECT_FALSE(place(false).is_whole) << name;
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(scratch_.read("precious"), "precious") << name;
  }
}

TEST_F(PlaceTree, ATreeCountsAsWholeOnceItsFilesAreOnTheDisk) {
  const tests::DiskSteps steps;
  bring(line("a", "one"));
  scratch_.write("code/a", "one");
  EXPECT_TRUE(place().is_whole);
  EXPECT_TRUE(steps.are_flushed_before("/a", "write ", ".whole")) << steps.text();
}

}  // namespace
}  // namespace dtool::host
