// A log's bytes and the lines between them that tell where they come from are told apart, however
// they are cut, and another connection can go on at the right place.
#include "cli/logs/log_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace dtool::cli {
namespace {

/// Keeps what it is told, breaks as `<WHAT>`.
class Kept : public LogStream {
 public:
  Kept() : LogStream("/a/path") {}
  std::string text;

 private:
  void on_bytes(std::string_view bytes) override { text += bytes; }
  void on_break(std::string_view what) override { text += "<" + std::string(what) + ">"; }
};

std::string mark(const std::string& text) {
  return "tail: /a/path: " + text + "\n";
}

TEST(LogStream, WhatComesBeforeTheFirstMarkIsNotOfTheLog) {
  Kept stream;
  stream.add("Welcome to this host\n");
  EXPECT_FALSE(stream.has_begun());
  stream.add("no line end here " + mark("from 0") + "one\n");
  EXPECT_TRUE(stream.has_begun());
  EXPECT_EQ(stream.text, "one\n");
  EXPECT_EQ(stream.offset(), 4U);
}

TEST(LogStream, HoweverBytesAreCutTheSameComesOut) {
  const std::string whole = "hello\n" + mark("from 3") + "one\ntail: /a/pa is a line\n" +
                            mark("rotated") + "two\nhalf a line" + mark("file truncated") +
                            "three\ntail: /a/path";
  for (std::size_t size = 1; size <= whole.size(); ++size) {
    Kept stream;
    for (std::size_t at = 0; at < whole.size(); at += size) stream.add(whole.substr(at, size));
    stream.end();
    EXPECT_EQ(stream.text,
              "one\ntail: /a/pa is a line\n<rotated>two\nhalf a line<file truncated>three\n"
              "tail: /a/path")
        << "in pieces of " << size;
    EXPECT_EQ(stream.offset(), 19U);
  }
}

TEST(LogStream, AnotherConnectionGoesOnBehindWhatWasHandedOn) {
  Kept stream;
  const std::string half_a_mark = mark("rotated").substr(0, 10);
  stream.add(mark("from 100") + "one\n" + half_a_mark);
  EXPECT_EQ(stream.text, "one\n");
  EXPECT_EQ(stream.offset(), 104U);
  EXPECT_EQ(stream.last_in_hex(), "6f6e650a");
  stream.begin_again();
  EXPECT_FALSE(stream.has_begun());
  stream.add("Welcome again\n" + mark("from 104") + half_a_mark + "two\n");
  EXPECT_EQ(stream.text, "one\n" + half_a_mark + "two\n");
  EXPECT_EQ(stream.offset(), 104 + half_a_mark.size() + 4);
}

TEST(LogStream, AfterABreakNothingOfTheOldFileIsRemembered) {
  Kept stream;
  stream.add(mark("from 0") + "old\n" + mark("rotated"));
  EXPECT_EQ(stream.offset(), 0U);
  EXPECT_EQ(stream.last_in_hex(), "");
  stream.add("new");
  EXPECT_EQ(stream.offset(), 3U);
  EXPECT_EQ(stream.last_in_hex(), "6e6577");
  // A host that goes on elsewhere says so; its bytes before are not known here.
  stream.begin_again();
  stream.add(mark("lost") + mark("from 0") + "n");
  EXPECT_EQ(stream.text, "old\n<rotated>new<lost>n");
  EXPECT_EQ(stream.last_in_hex(), "6e");
}

TEST(LogStream, APlaceThatIsNoNumberIsPassedOver) {
  Kept stream;
  stream.add(mark("from 100") + "one\n");
  for (const std::string text :
       {"from x", "from ", "from -1", "from 5x", "from 18446744073709551616"})
    stream.add(mark(text));
  stream.add("two\n");
  EXPECT_EQ(stream.text, "one\ntwo\n");
  EXPECT_EQ(stream.offset(), 108U);
  stream.begin_again();
  stream.add(mark("from x") + "three\n");
  EXPECT_FALSE(stream.has_begun());
}

TEST(LogStream, OfALongLogTheLastBytesTellTheFile) {
  Kept stream;
  stream.add(mark("from 0") + std::string(1000, 'a'));
  stream.add(std::string(510, 'b'));
  EXPECT_EQ(
      stream.last_in_hex(), "6161" + [] {
        std::string text;
        for (int i = 0; i < 510; ++i) text += "62";
        return text;
      }());
  EXPECT_EQ(stream.offset(), 1510U);
  EXPECT_EQ(stream.text.size(), 1510U);
}

TEST(LogStream, EachPathIsAnotherSpellingOfTheSameDescriptor) {
  const std::string one = make_unique_path();
  EXPECT_NE(one, make_unique_path());
  EXPECT_EQ(std::filesystem::path(one).lexically_normal(), "/proc/self/fd/3");
}

}  // namespace
}  // namespace dtool::cli
