// SPDX-License-Identifier: MIT
// A log's bytes are told apart from what is said of them, and another connection can go on at the
// right place.
#include "cli/logs/log_output.h"

#include <gtest/gtest.h>

#include <string>

#include "ssh/wire/run.h"

namespace dtool::cli {
namespace {

using host::to_frame;

/// Keeps what it is told, breaks as `<WHAT>`.
class Kept : public LogStream {
 public:
  std::string text;

 private:
  void on_bytes(std::string_view bytes) override { text += bytes; }
  void on_break(Break what) override {
    text += what == Break::rotated ? "<rotated>" : what == Break::lost ? "<lost>" : "<truncated>";
  }
};

std::string from(std::uint64_t offset, bool is_lost = false) {
  return to_frame(host::LogBegin{offset, is_lost});
}
std::string bytes(const std::string& text) {
  return to_frame(host::LogBytes{text});
}

TEST(LogStream, HoweverBytesAreCutTheSameComesOut) {
  const std::string whole = from(3) + bytes("one\n") + to_frame(host::LogBreak{true}) +
                            bytes("two\nhalf a line") + to_frame(host::StillHere()) +
                            to_frame(host::LogBreak{false}) + bytes("three\n") +
                            to_frame(host::LogEnd{"exited", 3});
  for (std::size_t size = 1; size <= whole.size(); ++size) {
    Kept stream;
    for (std::size_t at = 0; at < whole.size(); at += size) stream.add(whole.substr(at, size));
    EXPECT_EQ(stream.text, "one\n<rotated>two\nhalf a line<truncated>three\n") << size;
    EXPECT_EQ(stream.offset(), 6U);
    ASSERT_TRUE(stream.log_end());
    EXPECT_EQ(stream.log_end()->state, "exited");
    EXPECT_EQ(stream.log_end()->exit_code, 3);
  }
}

TEST(LogStream, AHostsFaultIsTheEndHoweverItIsWorded) {
  for (const std::string& sentence : {std::string("no such file"), std::string(1, '\0')}) {
    Kept stream;
    stream.add(from(3) + to_frame(host::Fault{sentence}) + bytes("more\n"));
    EXPECT_NE(stream.fault(), "");
    EXPECT_EQ(stream.text, "");
  }
}

TEST(LogStream, AnotherConnectionGoesOnBehindWhatWasHandedOn) {
  Kept stream;
  stream.add(from(100) + bytes("one\n") + bytes("half").substr(0, 7));
  EXPECT_EQ(stream.text, "one\n");
  EXPECT_EQ(stream.offset(), 104U);
  EXPECT_EQ(stream.last(), "one\n");
  stream.begin_again();
  EXPECT_FALSE(stream.has_begun());
  stream.add(from(104) + bytes("two\n"));
  EXPECT_EQ(stream.text, "one\ntwo\n");
  EXPECT_EQ(stream.last(), "one\ntwo\n");
}

TEST(LogStream, AfterABreakNothingOfTheOldFileIsRemembered) {
  Kept stream;
  stream.add(from(0) + bytes("old\n") + to_frame(host::LogBreak{true}));
  EXPECT_EQ(stream.offset(), 0U);
  EXPECT_EQ(stream.last(), "");
  stream.add(bytes("new"));
  EXPECT_EQ(stream.offset(), 3U);
  // A host that goes on elsewhere says so; its bytes before are not known here.
  stream.begin_again();
  stream.add(from(0, true) + bytes("n"));
  EXPECT_EQ(stream.text, "old\n<rotated>new<lost>n");
  EXPECT_EQ(stream.last(), "n");
}

TEST(LogStream, WhatIsNoLogIsAFaultAndNothingBehindItIsTaken) {
  for (const std::string& odd :
       {std::string("\xff\xff\xff\xff\xff\xff", 6), to_frame(host::StartReply{"", "", ""})}) {
    Kept stream;
    stream.add(from(0) + bytes("one\n") + odd + bytes("two\n"));
    EXPECT_EQ(stream.text, "one\n");
    EXPECT_NE(stream.fault().find("no log"), std::string::npos);
  }
}

TEST(LogStream, AHostThatHasNoLogSaysWhy) {
  Kept stream;
  stream.add(to_frame(host::Fault{"there is no log: /x"}));
  EXPECT_EQ(stream.fault(), "there is no log: /x");
}

TEST(LogStream, OfALongLogTheLastBytesTellTheFile) {
  Kept stream;
  stream.add(from(0) + bytes(std::string(1000, 'a')));
  stream.add(bytes(std::string(510, 'b')));
  EXPECT_EQ(stream.last(), "aa" + std::string(510, 'b'));
  EXPECT_EQ(stream.offset(), 1510U);
}

}  // namespace
}  // namespace dtool::cli
