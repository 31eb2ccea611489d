// SPDX-License-Identifier: MIT
// Any bytes through a TOML string and back.
#include "killfiles/strict_toml.h"

#include <gtest/gtest.h>

#include <random>

namespace dtool::killfiles {
namespace {

std::string back(const std::string& bytes) {
  const StrictTable table = StrictTable::parse("x = " + to_toml(bytes) + "\n", "test");
  return from_toml(table.text("x").value());
}

TEST(TomlBytes, KeepReadableTextReadable) {
  EXPECT_EQ(to_toml("gpu01 \xc3\xa4"), "\"gpu01 \xc3\xa4\"");
  EXPECT_EQ(to_toml("a\"b\\c\nd\x7f"), "\"a\\\"b\\\\c\\u000Ad\\u007F\"");
  EXPECT_EQ(to_toml("\xff"), "\"\\U0010FEFF\"");
}

TEST(TomlBytes, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    EXPECT_EQ(back(std::string(1, static_cast<char>(byte))),
              std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(back(all), all);
}

TEST(TomlBytes, SequencesAtTheEdgesOfUtf8ComeBack) {
  for (const std::string bytes :
       {"\xc0\x80",         "\xc1\xbf",         "\xc2\x80",         "\xdf\xbf",
        "\xe0\x80\x80",     "\xe0\xa0\x80",     "\xed\x9f\xbf",     "\xed\xa0\x80",
        "\xef\xbf\xbe",     "\xef\xbf\xbf",     "\xf0\x80\x80\x80", "\xf0\x90\x80\x80",
        "\xf4\x8f\xb9\xbf", "\xf4\x8f\xba\x80", "\xf4\x8f\xbb\xbf", "\xf4\x8f\xbc\x80",
        "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xe2\x82",         "\xf4\x8f\xba",
        "\xef\xbb\xbf",     "\xe2\x80\xa8",     "\xc2\x85"}) {
    EXPECT_EQ(back(bytes), bytes) << to_toml(bytes);
  }
}

TEST(TomlBytes, RandomBytesComeBack) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (unsigned length = random() % 24; length > 0; --length) {
      const bool corner = random() % 3 == 0;
      bytes += corner ? std::string("\xf4\x8f\xba\x80\xbf", 5)[random() % 5]
                      : static_cast<char>(random() % 256);
    }
    EXPECT_EQ(back(bytes), bytes) << to_toml(bytes);
  }
}

}  // namespace
}  // namespace dtool::killfiles
