// SPDX-License-Identifier: MIT
// Hostfiles of any content are read or refused with file and line.
#include <gtest/gtest.h>

#include "ssh/host.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::fuzz {
namespace {

TEST(Fuzz, HostfilesAreReadOrRefusedWithTheirLine) {
  Mutator mutator(
      {"red01 slots=2\nred02 max_slots = 4\n", "# all\n\ngpu1\ngpu2 slots=1 # two\n",
       "ann@h1:22 slots=8\n[fe80::1]:22\n", "a\r\nb\r\n"},
      {"slots=", "max_slots", "=", "\n", "#", " ", "0", "-1", "99999999999", "@", "local"});
  const tests::TemporaryFolder folder;
  const Tally tally = feed<std::invalid_argument>(mutator, 5'000, [&](const std::string& text) {
    const std::filesystem::path file = folder.write("hosts", text);
    try {
      const std::vector<ssh::HostfileEntry> entries = ssh::read_hostfile(file);
      EXPECT_FALSE(entries.empty()) << text;
      for (const ssh::HostfileEntry& entry : entries) {
        EXPECT_EQ(ssh::parse_host(ssh::to_string(entry.host)), entry.host) << text;
        EXPECT_GE(entry.slots.value_or(1), 1) << text;
      }
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      const bool names_line = message.starts_with(file.string() + ":");
      EXPECT_TRUE(names_line || message.ends_with(file.string() + " is not a text file"))
          << message;
      throw;
    }
  });
  EXPECT_GT(tally.taken, 200);
  EXPECT_GT(tally.refused, 200);
}

}  // namespace
}  // namespace dtool::fuzz
