// SPDX-License-Identifier: MIT
// Hostfiles in Open MPI's and DeepSpeed's form.
#include "ssh/host.h"

#include <gtest/gtest.h>

#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

class HostfileTest : public testing::Test {
 protected:
  std::vector<HostfileEntry> read(std::string_view text) {
    return read_hostfile(folder_.write("hosts", text));
  }

  // The message without the folder's name in front.
  std::string fault(std::string_view text) {
    const std::string message = tests::fault_of([&] { read(text); });
    const std::string folder = folder_.path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }

  tests::TemporaryFolder folder_;
};

TEST_F(HostfileTest, ReadsHostsInOrderWithTheirSlots) {
  const std::vector<HostfileEntry> entries = read(
      "# the red machines\n"
      "red01 slots=2\n"
      "\n"
      "  ann@red02:2222   max_slots = 4   # the big one\n"
      "red03 slots=2 max-slots=8\r\n"
      "\t\n"
      "[fe80::1]:22\n"
      "local slots =1");
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[0].host.name, "red01");
  EXPECT_EQ(entries[0].slots, 2);
  EXPECT_EQ(to_string(entries[1].host), "ann@red02:2222");
  EXPECT_EQ(entries[1].slots, 4);
  EXPECT_EQ(entries[2].slots, 2);
  EXPECT_EQ(to_string(entries[3].host), "[fe80::1]:22");
  EXPECT_EQ(entries[3].slots, std::nullopt);
  EXPECT_TRUE(entries[4].host.is_local);
  EXPECT_EQ(entries[4].slots, 1);
}

TEST_F(HostfileTest, RefusesAFileWithoutHosts) {
  EXPECT_EQ(fault(""), "hosts:1: no host is named");
  EXPECT_EQ(fault("# none\n\n"), "hosts:2: no host is named");
}

TEST_F(HostfileTest, RefusesAFileThatCannotBeRead) {
  EXPECT_EQ(tests::fault_of([&] { read_hostfile(folder_.path() / "none"); }),
            "hostfile " + (folder_.path() / "none").string() +
                ": cannot be read: No such file or directory");
  EXPECT_NE(tests::fault_of([&] { read_hostfile(folder_.path()); }), "");
}

TEST_F(HostfileTest, NamesTheLineOfAWordThatIsNoHost) {
  EXPECT_EQ(fault("red01\n\nred02:0\n"),
            "hosts:3: 'red02:0' is not a host: port '0' is not a number from 1 to 65535");
  EXPECT_EQ(fault("= 3\n"), "hosts:1: '=' is not a host: a host name does not hold '='");
}

TEST_F(HostfileTest, SaysWhereARangeBelongs) {
  for (const std::string line : {"h[1-3] slots=1", "h1,h2"}) {
    EXPECT_EQ(fault(line),
              "hosts:1: '" + line.substr(0, line.find(' ')) +
                  "' is not one host\nhint: a hostfile has a host a line; ranges and commas are "
                  "for --runs_on");
  }
}

TEST_F(HostfileTest, RefusesUnknownKeys) {
  EXPECT_EQ(fault("red01 slot=2\n"),
            "hosts:1: unknown key 'slot'\nhint: a line has one host, then slots=N or max_slots=N");
  EXPECT_EQ(fault("red01 red02\n"),
            "hosts:1: unknown key 'red02'\nhint: a line has one host, then slots=N or max_slots=N");
}

TEST_F(HostfileTest, RefusesSlotsThatAreNoPositiveNumber) {
  for (const std::string count : {"0", "-1", "two", "2x", "1.5", "99999999999"}) {
    EXPECT_EQ(fault("a\nred01 slots=" + count),
              "hosts:2: slots '" + count + "' is not a positive number");
  }
  for (const std::string line : {"red01 slots", "red01 slots=", "red01 slots 2"}) {
    EXPECT_EQ(fault(line), "hosts:1: 'slots' has no value\nhint: write slots=8");
  }
  EXPECT_EQ(fault("red01 slots=1 slots=2"), "hosts:1: 'slots' is given twice");
  EXPECT_EQ(fault("red01 slots=3 max_slots=2"), "hosts:1: slots 3 is more than max_slots 2");
}

TEST_F(HostfileTest, LeavesOutAByteOrderMark) {
  EXPECT_EQ(fault("\xef\xbb\xbfred01 slots=2\n"), "");
}

TEST_F(HostfileTest, NamesAGroupOfAnInventory) {
  EXPECT_EQ(fault("[gpu]\nred01\n"),
            "hosts:1: [gpu] is a group of an Ansible inventory\nhint: a hostfile has hosts alone, "
            "one a line; groups stand in [groups] of dtool.toml");
  EXPECT_EQ(fault("[::1]:22\n"), "");
}

TEST_F(HostfileTest, RefusesAHostNamedTwice) {
  EXPECT_EQ(fault("red01\nred02\n# again\nred01 slots=2\n"),
            "hosts:4: host 'red01' is named twice, first in line 1");
}

}  // namespace
}  // namespace dtool::ssh
