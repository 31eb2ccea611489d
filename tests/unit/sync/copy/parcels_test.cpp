// SPDX-License-Identifier: MIT
#include "sync/copy/parcels.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "ssh/wire/copy.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

/// Files of these sizes, `a`, `b` and so on.
CopyList list_of(const std::vector<std::uint64_t>& sizes) {
  CopyList list;
  for (const std::uint64_t size : sizes) {
    host::CopyEntry entry;
    entry.name = std::string(1, static_cast<char>('a' + list.entries.size()));
    entry.size = size;
    list.entries.push_back(entry);
  }
  return list;
}

TEST(CutParcels, ALargeFileComesInSeveralAndSmallOnesTogether) {
  const auto parcels =
      cut_parcels(list_of({5, 25, 0, 3}), {{7, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}}}, {10, 10});
  const std::vector<Parcel> wanted = {{{{0, 0, 5}, {1, 0, 5}}, {7}, 10},
                                      {{{1, 5, 10}}, {7}, 10},
                                      {{{1, 15, 10}}, {7}, 10},
                                      {{{2, 0, 0}, {3, 0, 3}}, {7}, 3}};
  EXPECT_EQ(parcels, wanted);
}

TEST(CutParcels, NoHostIsSentWhatItHas) {
  const auto parcels =
      cut_parcels(list_of({4, 9}), {{0, {{0, 0}, {1, 0}}}, {3, {{1, 6}}}}, {100, 100});
  const std::vector<Parcel> wanted = {{{{0, 0, 4}, {1, 0, 6}}, {0}, 10}, {{{1, 6, 3}}, {0, 3}, 3}};
  EXPECT_EQ(parcels, wanted);
}

TEST(CutParcels, TheBeginningOfAFileComesBeforeTheRest) {
  const auto parcels =
      cut_parcels(list_of({9, 9}), {{0, {{0, 0}, {1, 5}}}, {1, {{0, 5}, {1, 0}}}}, {100, 100});
  std::vector<std::uint64_t> at = {0, 5};  // what host 0 has of each
  for (const Parcel& parcel : parcels) {
    if (parcel.hosts.front() != 0) continue;
    for (const Range& range : parcel.ranges) {
      EXPECT_EQ(range.offset, at[range.entry]);
      at[range.entry] += range.bytes;
    }
  }
  EXPECT_EQ(at, (std::vector<std::uint64_t>{9, 9}));
}

class ListSourcesTest : public testing::Test {
 protected:
  std::vector<std::string> names(const std::vector<std::string>& sources,
                                 const std::vector<std::string>& excludes = {}) const {
    std::vector<std::string> names;
    for (const auto& entry : list_sources(sources, excludes).entries) names.push_back(entry.name);
    return names;
  }
  std::string at(const std::string& name) const { return (scratch_.path() / name).native(); }

  tests::TemporaryFolder scratch_;
};

TEST_F(ListSourcesTest, ASlashStandsForWhatIsInAFolder) {
  scratch_.write("data/sub/x", "x");
  scratch_.write("data/.git/config", "");
  scratch_.write("data/.~dtool~copy-0/lock", "");
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({at("data")}),
            (Names{"data/", "data/.git/", "data/.git/config", "data/sub/", "data/sub/x"}));
  EXPECT_EQ(names({at("data/")}), (Names{".git/", ".git/config", "sub/", "sub/x"}));
  EXPECT_EQ(names({at("data/")}, {".git/"}), (Names{"sub/", "sub/x"}));
}

TEST_F(ListSourcesTest, ASourceThatIsALinkIsFollowedAndOthersAreNot) {
  scratch_.write("data/x", "x");
  fs::create_symlink("x", scratch_.path() / "data/inner");
  fs::create_directory_symlink("data", scratch_.path() / "outer");
  const CopyList list = list_sources({at("outer")}, {});
  ASSERT_EQ(list.entries.size(), 3U);
  EXPECT_EQ(list.entries[0].name, "outer/");
  EXPECT_EQ(list.entries[1].target, "x");
  EXPECT_EQ(list.files, 2U);
}

TEST_F(ListSourcesTest, BitsThatActForAFilesOwnerAreNotListed) {
  scratch_.write("data/program", "");
  fs::permissions(scratch_.path() / "data/program", static_cast<fs::perms>(07755));
  fs::permissions(scratch_.path() / "data", static_cast<fs::perms>(07755));
  for (const auto& entry : list_sources({at("data")}, {}).entries)
    EXPECT_EQ(entry.mode, 0755U) << entry.name;
}

TEST_F(ListSourcesTest, WhatIsMissingOrThereTwiceIsNamed) {
  scratch_.write("one", "");
  scratch_.write("other/one", "");
  EXPECT_THROW(names({at("missing")}), std::runtime_error);
  EXPECT_THROW(names({at("one/")}), std::runtime_error);
  EXPECT_THROW(names({at("one"), at("other/one")}), std::runtime_error);
  EXPECT_THROW(names({at("one"), at("other/")}), std::runtime_error);
}

TEST_F(ListSourcesTest, SumsAreRightInWhateverOrderRangesAreRead) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  const fs::path file = scratch_.write("file", text);
  const CopyList list = list_sources({file.native()}, {});
  const std::string wanted = sum_of_file(list, 0);
  const std::string content = scratch_.read("file");
  RunningSums sums;
  sums.add(0, 0, content.substr(0, 1000));
  sums.add(0, 5000, content.substr(5000, 1000));  // does not follow on
  sums.add(0, 1000, content.substr(1000, 9));
  EXPECT_EQ(sums.finish(0, list), wanted);
  sums.add(0, 7, content.substr(7, 9));  // of a file whose beginning the host has
  EXPECT_EQ(sums.finish(0, list), wanted);
  EXPECT_EQ(sums.take_finished().at(0), wanted);
}

TEST_F(ListSourcesTest, AFileThatWasSwappedSinceIsNotRead) {
  const fs::path file = scratch_.write("data/sub/file", "listed");
  const fs::path secret = scratch_.write("private/file", "secret");
  fs::last_write_time(secret, fs::last_write_time(file));
  const CopyList list = list_sources({at("data")}, {});
  const std::size_t entry = list.entries.size() - 1;
  EXPECT_NO_THROW(sum_of_file(list, entry));
  fs::rename(scratch_.path() / "data/sub", scratch_.path() / "aside");
  fs::create_directory_symlink("../private", scratch_.path() / "data/sub");
  EXPECT_THROW(sum_of_file(list, entry), std::runtime_error) << "its folder for a link";
  fs::remove(secret);
  fs::create_hard_link(scratch_.path() / "aside/file", secret);
  EXPECT_THROW(sum_of_file(list, entry), std::runtime_error) << "even to the very file";
  fs::remove(scratch_.path() / "data/sub");
  fs::rename(scratch_.path() / "aside", scratch_.path() / "data/sub");
  EXPECT_NO_THROW(sum_of_file(list, entry));
  fs::rename(file, scratch_.path() / "aside");
  fs::create_symlink("../../private/file", file);
  EXPECT_THROW(sum_of_file(list, entry), std::runtime_error) << "it for a link";
  fs::remove(file);
  fs::copy_file(scratch_.path() / "aside", file);
  fs::last_write_time(file, fs::last_write_time(scratch_.path() / "aside"));
  EXPECT_THROW(sum_of_file(list, entry), std::runtime_error) << "it for another file";
}

TEST_F(ListSourcesTest, AFileThatChangedSinceIsNotRead) {
  const fs::path file = scratch_.write("file", "before");
  const CopyList list = list_sources({file.native()}, {});
  scratch_.write("file", "later on");
  EXPECT_THROW(sum_of_file(list, 0), std::runtime_error);
}

TEST(ParcelSizes, LittleIsOneParcelMoreIsTwoAndMuchIsAboutEight) {
  EXPECT_EQ(parcel_sizes(3, 1'333'333).first, kParcel) << "it is not passed on";
  EXPECT_EQ(parcel_sizes(3, 1'333'334).first, 250'000U);
  EXPECT_GE(parcel_sizes(3, 15'999'999).most, 15'999'999U);
  EXPECT_EQ(parcel_sizes(2, 1'000'000'000).first, kParcel) << "they are not passed on";
  for (const auto& [bytes, most] : {std::pair{16'000'000U, 4'000'000U},
                                    {80'000'000U, 10'000'000U},
                                    {2'000'000'000U, 67'108'864U}}) {
    EXPECT_EQ(parcel_sizes(3, bytes).most, most);
    EXPECT_EQ(parcel_sizes(3, bytes).first, 250'000U) << "which shows who is slow";
  }
}

}  // namespace
}  // namespace dtool::tree_sync
