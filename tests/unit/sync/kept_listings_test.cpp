// SPDX-License-Identifier: MIT
#include "sync/listing.h"

#include <gtest/gtest.h>

#include <chrono>

#include "sync/tree.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

class KeptListingsTest : public ::testing::Test {
 protected:
  /// Lists the tree of that name, whose one file has so many bytes, and keeps it as of some hours
  /// ago.
  Listing keep(const std::string& name, int bytes, int hours_ago) {
    scratch_.write(name + "/new\nline", std::string(static_cast<std::size_t>(bytes), 'x'));
    Listing listing = list_tree(read_tree(root(name), {}));
    keep_listing(listing, root(name), folder_);
    fs::last_write_time(folder_ / listing.fingerprint,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
    return listing;
  }
  fs::path root(const std::string& name) const { return scratch_.path() / name; }

  tests::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path() / "kept";
};

TEST_F(KeptListingsTest, WhatIsKeptIsReadAgainAndNothingElse) {
  std::vector<Listing> listings;
  for (int i = 0; i < 10; ++i) listings.push_back(keep("tree", i, 20 - i));
  const auto kept = kept_listing(listings.back().fingerprint, folder_);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->entries, listings.back().entries);
  EXPECT_EQ(kept->digest, listings.back().digest);
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all) << "names are for nobody else";
  EXPECT_FALSE(kept_listing(listings.front().fingerprint, folder_)) << "too old";
  scratch_.write("kept/" + listings.back().fingerprint, "spoilt");
  EXPECT_FALSE(kept_listing(listings.back().fingerprint, folder_));
  EXPECT_FALSE(kept_listing("../tree/new\nline", folder_));
}

TEST_F(KeptListingsTest, TheLastOneOfATreeIsFoundAmongThoseOfOthers) {
  EXPECT_EQ(last_kept(root("a"), folder_), std::nullopt) << "nothing was kept";
  keep("a", 1, 5);
  const Listing a = keep("a", 2, 4);
  const Listing b = keep("b", 3, 3);
  EXPECT_EQ(last_kept(root("a"), folder_), a.fingerprint);
  EXPECT_EQ(last_kept(root("b"), folder_), b.fingerprint);
  EXPECT_EQ(last_kept(scratch_.path(), folder_), std::nullopt);
  scratch_.write("kept/new.1", root("a").native() + '\0');
  EXPECT_EQ(last_kept(root("a"), folder_), a.fingerprint) << "that one was not finished";
}

}  // namespace
}  // namespace dtool::tree_sync
