// SPDX-License-Identifier: MIT
// The file `supervise`: what the launcher writes is what dtool-host reads.
#include "cli/run/host/supervision.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace dtool::host {
namespace {

Supervision machine_0() {
  return {0, "me@h 0", 3, 2, std::chrono::seconds(30), "fe80::1%eth0", 29'501, {"h0", "h1", "h2"}};
}

Supervision machine_2() {
  Supervision settings = machine_0();
  settings.place = 2;
  settings.hosts.clear();
  return settings;
}

void expect_fault(const std::string& text, const std::string& what) {
  try {
    parse_supervision(text);
    FAIL() << "taken: " << text;
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

std::string replaced(std::string text, const std::string& part, const std::string& other) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, text.npos) << part;
  return text.replace(at, part.size(), other);
}

TEST(Supervision, IsReadAsItWasWritten) {
  EXPECT_EQ(parse_supervision(to_text(machine_0())), machine_0());
  EXPECT_EQ(parse_supervision(to_text(machine_2())), machine_2());
  Supervision ends = machine_0();
  ends.ends_with = 2;
  EXPECT_EQ(parse_supervision(to_text(ends)), ends);
  ends.ends_with = 3;
  expect_fault(to_text(ends), "ends_with is not below places");
  const Supervision alone{0, "h", 1, 0, std::chrono::seconds(60), {}, 0, {"h"}};
  EXPECT_EQ(parse_supervision(to_text(alone)), alone);
}

TEST(Supervision, IsPlainText) {
  EXPECT_EQ(to_text(machine_2()),
            "place 2\nhost me@h 0\nplaces 3\nmax_restarts 2\nlost_after 30\n"
            "coordinator fe80::1%eth0 29501\n");
}

TEST(Supervision, NamesThatAreUnknownMissingOrThereTwiceAreFaults) {
  const std::string text = to_text(machine_2());
  expect_fault(text + "pace 1\n", "'pace' is no name");
  expect_fault(text + "place 1\n", "'place' is there twice");
  expect_fault(text + "place", "its last line has no end");
  expect_fault(text + "place\n", "'place' has no value");
  expect_fault(text + "\n", "has no value");
  expect_fault("", "place is missing");
  for (const std::string line : {"place 2\n", "host me@h 0\n", "places 3\n", "max_restarts 2\n",
                                 "lost_after 30\n", "coordinator fe80::1%eth0 29501\n"})
    expect_fault(replaced(text, line, ""), " is missing");
}

TEST(Supervision, ValuesAreWhatTheyMayBe) {
  const std::string text = to_text(machine_2());
  for (const std::string value : {"-1", "3", "07x", "a[0]", " 1", "99999999999999999999"})
    expect_fault(replaced(text, "place 2\n", "place " + value + "\n"), "place");
  expect_fault(replaced(text, "lost_after 30", "lost_after 0"), "lost_after is '0'");
  for (const std::string value : {"h", "h 0", "h 65536", "h 1 2", "h x"})
    expect_fault(replaced(text, "fe80::1%eth0 29501", value), "coordinator is");
}

TEST(Supervision, MachineZeroAloneHasAllNames) {
  expect_fault(to_text(machine_2()) + "machine h0\n", "it names 1 machines instead of 0");
  expect_fault(replaced(to_text(machine_0()), "machine h1\n", ""), "2 machines instead of 3");
}

}  // namespace
}  // namespace dtool::host
