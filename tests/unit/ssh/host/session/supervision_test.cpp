// SPDX-License-Identifier: MIT
// The file `supervise`: what the launcher writes is what dtool-host reads.
#include "ssh/host/session/supervision.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "tests/unit/temporary_folder.h"

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

TEST(Supervision, NumbersReachTheirLimitsAndNoFurther) {
  Supervision most = machine_2();
  most.place = 999'999;
  most.places = 1'000'000;
  most.max_restarts = 1000;
  most.lost_after = std::chrono::seconds(1'000'000);
  most.ends_with = 999'999;
  const std::string text = to_text(most);
  EXPECT_EQ(parse_supervision(text), most);
  expect_fault(replaced(text, "place 999999", "place 1000000"), "place is '1000000'");
  expect_fault(replaced(text, "places 1000000", "places 1000001"), "places is '1000001'");
  expect_fault(replaced(text, "max_restarts 1000", "max_restarts 1001"), "max_restarts is '1001'");
  expect_fault(replaced(text, "lost_after 1000000", "lost_after 1000001"), "lost_after is '10");
  expect_fault(replaced(text, "ends_with 999999", "ends_with 1000000"), "ends_with is '1000000'");
  Supervision least = machine_0();
  least.ends_with = 0;
  least.lost_after = std::chrono::seconds(1);
  EXPECT_EQ(parse_supervision(to_text(least)), least);
  expect_fault(replaced(to_text(least), "places 3", "places 0"), "places is '0'");
  expect_fault(replaced(to_text(least), "ends_with 0", "ends_with -1"), "ends_with is '-1'");
}

TEST(Supervision, HasAWayToMachineZeroWhereThereAreSeveralMachines) {
  const Supervision two{1, "h", 2, 0, std::chrono::seconds(60), "10.0.0.1", 20'123, {}};
  EXPECT_EQ(parse_supervision(to_text(two)), two);
  const std::string way = "coordinator 10.0.0.1 20123\n";
  expect_fault(replaced(to_text(two), way, ""), "coordinator is missing");
  const Supervision alone{0, "h", 1, 0, std::chrono::seconds(60), {}, 0, {"h"}};
  expect_fault(to_text(alone) + way, "coordinator is one too many");
  expect_fault(replaced(to_text(two), " 20123", " 1 "), "coordinator is '10.0.0.1 1 '");
  Supervision port_one = two;
  port_one.port = 1;
  EXPECT_EQ(parse_supervision(to_text(port_one)), port_one);
  expect_fault(replaced(to_text(two), "10.0.0.1 20123", " 20123"), "coordinator is");
}

TEST(Supervision, AValueIsWhatFollowsTheBlank) {
  expect_fault(replaced(to_text(machine_2()), "place 2\n", "place \n"), "'place' has no value");
  expect_fault(replaced(to_text(machine_2()), "place 2\n", "place\n"), "'place' has no value");
}

TEST(Supervision, SignsOfLifeComeOftenEnoughForTheSilenceThatIsALoss) {
  using std::chrono::milliseconds;
  Supervision settings = machine_0();
  settings.lost_after = std::chrono::seconds(60);
  EXPECT_EQ(time_between_signs(settings), milliseconds(2030));
  settings.places = 1000;
  EXPECT_EQ(time_between_signs(settings), milliseconds(10'000)) << "a sixth of the silence";
  settings.lost_after = std::chrono::seconds(3);
  EXPECT_EQ(time_between_signs(settings), milliseconds(500));
}

TEST(Supervision, MachineZeroAloneHasAllNames) {
  expect_fault(to_text(machine_2()) + "machine h0\n", "it names 1 machines instead of 0");
  expect_fault(replaced(to_text(machine_0()), "machine h1\n", ""), "2 machines instead of 3");
}

TEST(Token, IsOf32To64HexDigits) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_EQ(read_token(), std::nullopt);
  for (const std::size_t size : {32U, 33U, 64U}) {
    const std::string token = std::string(size - 16, 'f') + "0123456789abcdef";
    folder.write("token", token + "\n");
    EXPECT_EQ(read_token(), token);
  }
  for (const std::string& bad : {std::string(31, 'a'), std::string(65, 'a'), std::string(32, 'g'),
                                 std::string(32, 'A'), std::string()}) {
    folder.write("token", bad + "\n");
    EXPECT_EQ(read_token(), std::nullopt) << bad;
  }
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace dtool::host
