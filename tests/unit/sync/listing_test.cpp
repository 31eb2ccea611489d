// SPDX-License-Identifier: MIT
#include "sync/listing.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <deque>

#include "ssh/quote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> bytes{};
  while (std::fgets(bytes.data(), bytes.size(), pipe) != nullptr) text += bytes.data();
  ::pclose(pipe);
  return text;
}

class ListingTest : public ::testing::Test {
 protected:
  Listing list() { return list_tree(read_tree(scratch_.path() / "tree", {})); }
  Entry file(std::string_view name, int size) {
    return {name, facts_.emplace_back(std::to_string(size) + " 1.0 644 ")};
  }

  tests::TemporaryFolder scratch_;
  std::deque<std::string> facts_;  ///< that entries point to
};

TEST_F(ListingTest, TheDigestIsWhatTheHostsFindPrints) {
  scratch_.write("tree/a", "12345");
  scratch_.write("tree/sub/new\nline", "x");
  fs::create_symlink("/no where", scratch_.path() / "tree/-link");
  fs::permissions(scratch_.path() / "tree/a", static_cast<fs::perms>(0640));
  const std::string command =
      "cd " + ssh::quote((scratch_.path() / "tree").native()) +
      " && find ./-link ./a ./sub/* -maxdepth 0 -printf '%p %s %T@ %m %l\\n' | sha256sum";
  EXPECT_EQ(output_of(command).substr(0, 64), list().digest);
}

TEST_F(ListingTest, EveryChangeChangesTheFingerprint) {
  scratch_.write("tree/sub/a", "1");
  std::string last = list().fingerprint;
  EXPECT_EQ(list().fingerprint, last);
  const auto differs = [&](const char* what) {
    const std::string now = list().fingerprint;
    EXPECT_NE(now, last) << what;
    last = now;
  };
  const fs::path file = scratch_.path() / "tree/sub/a";
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::nanoseconds(1));
  differs("a nanosecond");
  fs::permissions(file, static_cast<fs::perms>(0700));
  differs("a mode");
  fs::permissions(scratch_.path() / "tree/sub", static_cast<fs::perms>(0700));
  differs("a folder's mode");
  fs::rename(file, scratch_.path() / "tree/sub/b");
  differs("a name");
}

TEST_F(ListingTest, AFolderThatHasGoneIsNotListed) {
  scratch_.write("tree/a", "1");
  scratch_.write("tree/sub/b", "1");
  const Tree tree = read_tree(scratch_.path() / "tree", {});
  EXPECT_EQ(list_tree(tree).entries[1].name, "sub/");
  fs::remove_all(scratch_.path() / "tree/sub");
  for (const Entry& each : list_tree(tree).entries) {
    EXPECT_FALSE(each.is_folder()) << each.name;
    EXPECT_EQ(described(each).target, "");
  }
}

TEST_F(ListingTest, TheDeltaIsWhatDiffers) {
  const std::vector<Entry> before = {
      file("a", 1), file("b", 2), file("c", 3), {"d/", "755"}, file("d/x", 4)};
  const std::vector<Entry> now = {
      file("a", 1), file("b", 20), {"d/", "700"}, file("d/x", 4), file("e", 5)};
  const Delta delta = find_delta(before, now);
  EXPECT_EQ(delta.changed, (std::vector<Entry>{file("b", 20), {"d/", "700"}, file("e", 5)}));
  EXPECT_EQ(delta.removed, (std::vector<std::string_view>{"c"}));
  EXPECT_EQ(delta.bytes, 25U);
  EXPECT_TRUE(find_delta(before, before).changed.empty());
}

TEST_F(ListingTest, AnEditThatKeepsSizeAndTimeIsToldApart) {
  Entry before = file("a", 1);
  before.content = "one";
  Entry now = before;
  EXPECT_TRUE(find_delta({before}, {now}).changed.empty());
  now.content = "two";
  EXPECT_EQ(find_delta({before}, {now}).changed.size(), 1U);
}

}  // namespace
}  // namespace dtool::tree_sync
