// SPDX-License-Identifier: MIT
// What the launcher makes of replies that no dtool-host gives.
#include "sync/copy/copying.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ssh/wire/copy.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
using Runs = std::vector<host::EntryRun>;

class CopyingTest : public testing::Test {
 protected:
  CopyingTest() {
    for (const char* const name : {"a", "b", "c", "d"})
      scratch_.write(std::string("data/") + name, "1234");
    list_ = list_sources({(scratch_.path() / "data").native() + "/"}, {});
  }

  /// The host after the question that it answers so.
  CopyHost asked(host::CopyReply reply) {
    reply.reads_zstd = true;
    tests::FakeRemote remote("h1");
    remote.answers[0] = tests::answered(host::to_frame(reply));
    ssh::Events nobody;
    Copying copying(remote, list_, "~/data", "here", nobody);
    copying.ask();
    return copying.hosts().at(0);
  }

  tests::TemporaryFolder scratch_;
  CopyList list_;
};

TEST_F(CopyingTest, RunsThatAreNotOfTheListingAreRefused) {
  const std::vector<Runs> wrong = {
      {{0, 5}},                  // longer than the listing
      {{4, 1}},                  // behind it
      {{4, 0}},                  // likewise
      {{1, 4}},                  //
      {{0, 2}, {1, 2}},          // they overlap
      {{2, 1}, {0, 1}},          // not in order
      {{0, 1}, {0, 1}},          // twice the same
      {{0, kHuge}},              // a huge count
      {{1, kHuge}, {0, 1}},      // whose end is 0 again
      {{kHuge, 1}},              // a huge place
      {{kHuge, kHuge}},          //
      {{0, 4}, {kHuge - 1, 2}},  //
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    for (const bool is_unsure : {false, true}) {
      host::CopyReply reply;
      (is_unsure ? reply.unsure : reply.lacks) = wrong[i];
      const CopyHost host = asked(reply);
      EXPECT_FALSE(host.result.ok()) << i;
      EXPECT_EQ(host.result.error, "its answer is about other files") << i;
      EXPECT_EQ(host.entries, 0U) << i;
    }
  }
}

TEST_F(CopyingTest, RunsOfTheListingAreTaken) {
  host::CopyReply reply;
  reply.lacks = {{0, 1}, {2, 2}};
  const CopyHost host = asked(reply);
  EXPECT_TRUE(host.result.ok()) << host.result.error;
  EXPECT_EQ(host.entries, 3U);
  EXPECT_EQ(host.lacked, 12U);
}

TEST_F(CopyingTest, PartsOfWrongSizesAndPlacesCountForNoMoreThanTheirFile) {
  host::CopyReply reply;
  reply.lacks = {{0, 3}};
  reply.parts = {{0, kHuge}, {1, 3}, {1, 2}, {3, 4}, {kHuge, 4}, {4, 4}};
  const CopyHost host = asked(reply);
  EXPECT_TRUE(host.result.ok()) << host.result.error;
  EXPECT_EQ(host.entries, 3U);
  EXPECT_EQ(host.lacked, 0U + 2U + 4U);
}

}  // namespace
}  // namespace dtool::tree_sync
