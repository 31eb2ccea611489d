// SPDX-License-Identifier: MIT
// When a log grew is found again, also where the file of times was cut or spoilt.
#include "ssh/host/rank_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

struct LogTimesTest : testing::Test {
  void log(const std::string& text) { std::ofstream(state + "/log") << text; }
  void noted(const std::string& text) { std::ofstream(state + "/log_times") << text; }
  std::string noted() const {
    std::ifstream file(state + "/log_times");
    return (std::ostringstream() << file.rdbuf()).str();
  }
  /// As it is written for a size that long ago.
  static std::string line(std::int64_t age_s, unsigned long long size) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%010lld %019llu\n",
                  static_cast<long long>(std::time(nullptr) - age_s), size);
    return text.data();
  }
  /// Does it until the clock's second is the same after it as before.
  static void within_a_second(auto act) {
    for (std::time_t began = 0; began != std::time(nullptr);) {
      began = std::time(nullptr);
      act();
    }
  }
  /// The sizes that are noted.
  std::string sizes() const {
    std::istringstream lines(noted());
    std::string sizes;
    for (std::string each; std::getline(lines, each);)
      sizes += std::to_string(std::stoull(each.substr(11))) + " ";
    return sizes;
  }

  tests::TemporaryFolder folder;
  std::string state = folder.path();
};

TEST_F(LogTimesTest, ALogThatHasGrownIsNotedOnceASecond) {
  log("abc");
  noted(line(5, 2));
  note_log_time(state);
  EXPECT_EQ(sizes(), "2 3 ");
  EXPECT_EQ(noted().size(), 62U);
  note_log_time(state);
  EXPECT_EQ(sizes(), "2 3 ") << "it has not grown";
}

TEST_F(LogTimesTest, TheFirstTimeMakesTheFile) {
  log("abc");
  const mode_t before = ::umask(0);
  note_log_time(state);
  ::umask(before);
  EXPECT_EQ(sizes(), "3 ");
  struct stat found {};
  ::stat((state + "/log_times").c_str(), &found);
  EXPECT_EQ(found.st_mode & 07777U, 0666U);
}

TEST_F(LogTimesTest, AGrowthWithinTheSameSecondWaits) {
  log("abcd");
  within_a_second([&] {
    noted(line(0, 3));
    note_log_time(state);
  });
  EXPECT_EQ(sizes(), "3 ");
  log("ab");
  within_a_second([&] {
    noted(line(0, 3));
    note_log_time(state);
  });
  EXPECT_EQ(sizes(), "2 ") << "a shorter one does not wait";
}

TEST_F(LogTimesTest, AShorterLogBeginsANewFile) {
  log("ab");
  noted(line(9, 7) + line(5, 9));
  note_log_time(state);
  EXPECT_EQ(sizes(), "2 ");
  EXPECT_EQ(noted().size(), 31U);
}

TEST_F(LogTimesTest, WhatAFullDiskCutIsTakenAway) {
  log("abcde");
  noted(line(9, 2) + line(5, 3).substr(0, 20));
  note_log_time(state);
  EXPECT_EQ(sizes(), "2 5 ");
}

TEST_F(LogTimesTest, ASpoiltLastLineBeginsANewFile) {
  log("abcde");
  for (const char* spoilt :
       {"xxxxxxxxxx 0000000000000000003\n", "0000000003 xxxxxxxxxxxxxxxxxxx\n"}) {
    for (const std::string& before : {line(9, 2), std::string()}) {
      noted(before + spoilt);
      note_log_time(state);
      EXPECT_EQ(sizes(), "5 ") << before << spoilt;
    }
  }
}

TEST_F(LogTimesTest, WithoutALogNothingIsNoted) {
  note_log_time(state);
  EXPECT_FALSE(std::filesystem::exists(state + "/log_times"));
}

TEST_F(LogTimesTest, TheSizeThenIsTheNewestBefore) {
  EXPECT_THROW(log_size_then(state, 1), std::runtime_error);
  noted("");
  EXPECT_EQ(log_size_then(state, 1), 0U);
  noted(line(100, 10) + line(50, 20) + "xxxxxxxxxx 0000000000000000003\n" + line(10, 30));
  EXPECT_EQ(log_size_then(state, 5), 30U);
  EXPECT_EQ(log_size_then(state, 30), 20U);
  EXPECT_EQ(log_size_then(state, 70), 10U);
  EXPECT_EQ(log_size_then(state, 200), 0U);
  std::uint64_t then = 0;
  within_a_second([&] {
    noted(line(20, 1) + line(10, 2));
    then = log_size_then(state, 10);
  });
  EXPECT_EQ(then, 1U) << "what is noted within the second may have come later";
}

}  // namespace
}  // namespace dtool::host
