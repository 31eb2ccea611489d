// SPDX-License-Identifier: MIT
// Host lists of any form are read or refused; what was read is written and read back the same.
#include <gtest/gtest.h>

#include <set>

#include "ssh/host.h"
#include "tests/fuzz/mutate.h"

namespace dtool::fuzz {
namespace {

const std::vector<std::string> kSeeds = {
    "gpu01,gpu02",        "gpu[01-08,12]",     "a[1-2]b[3-4]c",     "ann@10.0.0.[1-4]",
    "[fe80::1]:22,local", "n[001-003]:2222",   "fe80::1%eth0",      "x,y[9-11],z",
    "a[1-3,5,7-8].b.org", "bob@[2001:db8::1]", "node-[1-2]-[08-10]"};
const std::vector<std::string> kTokens = {
    "[",  "]", "-",     ",", "@", ":",     "::", "[1-3]", "[01-", "0",
    "00", "9", "65536", " ", ".", "local", "%",  "#",     "\n"};

TEST(Fuzz, HostPatternsUnfoldAndFoldBack) {
  Mutator mutator(kSeeds, kTokens);
  const Tally tally = feed<std::invalid_argument>(mutator, 20'000, [](const std::string& text) {
    const std::vector<std::string> names = ssh::expand(text);
    if (names.size() > 5000) return;
    const std::vector<std::string> again = ssh::expand(ssh::fold(names));
    EXPECT_EQ(std::set(names.begin(), names.end()), std::set(again.begin(), again.end())) << text;
  });
  EXPECT_GT(tally.taken, 1000);
  EXPECT_GT(tally.refused, 1000);
}

TEST(Fuzz, HostsAreReadBackFromWhatIsWritten) {
  Mutator mutator(kSeeds, kTokens);
  const ssh::GroupLookup no_groups = [](std::string_view) -> std::string {
    throw std::invalid_argument("no groups");
  };
  const Tally tally = feed<std::invalid_argument>(mutator, 20'000, [&](const std::string& text) {
    for (const ssh::Host& host : ssh::parse_hosts(text, no_groups)) {
      EXPECT_EQ(ssh::parse_host(ssh::to_string(host)), host) << text;
    }
  });
  EXPECT_GT(tally.taken, 1000);
  EXPECT_GT(tally.refused, 1000);
}

}  // namespace
}  // namespace dtool::fuzz
