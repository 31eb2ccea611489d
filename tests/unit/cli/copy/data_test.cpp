// SPDX-License-Identifier: MIT
#include "cli/copy/copy_to_hosts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/action.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

class PlaceOfDataTest : public testing::Test {
 protected:
  void expect(const std::string& text, const std::string& source, const std::string& folder) {
    const DataPlace place = place_of_data(text);
    EXPECT_EQ(place.source, source) << text;
    EXPECT_EQ(place.folder, folder) << text;
  }

  tests::TemporaryFolder home_folder_;
  tests::TemporaryVariable home_{"HOME", home_folder_.path()};
  const std::string root_ = home_folder_.path().native();
  const std::filesystem::path file_ = home_folder_.write("sets/birds/names");
};

TEST_F(PlaceOfDataTest, AFolderBecomesTheFolderThere) {
  expect(root_ + "/sets/birds:/scratch/b", root_ + "/sets/birds/", "/scratch/b");
  expect(root_ + "/sets/birds/:b", root_ + "/sets/birds/", "~/b");
  expect(root_ + "/sets/birds", root_ + "/sets/birds/", "~/sets/birds");
  expect("/usr/include", "/usr/include/", "/usr/include");
}

TEST_F(PlaceOfDataTest, AFileKeepsItsName) {
  expect(file_, file_, "~/sets/birds");
  expect(file_.native() + ":/scratch/names", file_, "/scratch");
  expect(file_.native() + ":names", file_, "~/");
  EXPECT_THROW(place_of_data(file_.native() + ":/scratch/other"), UsageError);
}

TEST_F(PlaceOfDataTest, WhatIsNoPlaceIsRefused) {
  EXPECT_THROW(place_of_data(""), UsageError);
  EXPECT_THROW(place_of_data(":x"), UsageError);
  EXPECT_THROW(place_of_data("x:"), UsageError);
  EXPECT_THROW(place_of_data("x:y:z"), UsageError);
}

}  // namespace
}  // namespace dtool::cli
