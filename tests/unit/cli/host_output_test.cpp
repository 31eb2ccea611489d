// SPDX-License-Identifier: MIT
// What hosts say reaches the terminal in whole lines, or folded.
#include "cli/host_output.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

using ssh::Stream;
using tests::answered;
using tests::FakeRemote;

struct Shown {
  std::string out;
  std::string err;
};

/// What `play` shows on the two streams.
template <typename Play>
Shown shown(Play&& play) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  play();
  const std::string out = testing::internal::GetCapturedStdout();
  return {out, testing::internal::GetCapturedStderr()};
}

class Streamed : public testing::Test {
 protected:
  Console console;
  FakeRemote remote{"h[1-2]"};
  StreamedOutput output{console, remote.hosts(), "answered"};
};

TEST_F(Streamed, LinesStandBehindTheirHost) {
  const Shown result = shown([this] {
    output.on_output(0, Stream::out, "one\ntwo\n");
    output.on_output(1, Stream::out, "three\n");
  });
  EXPECT_EQ(result.out, "h1: one\nh1: two\nh2: three\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(Streamed, ALineIsShownWhenItIsWhole) {
  EXPECT_EQ(shown([this] { output.on_output(0, Stream::out, "hel"); }).out, "");
  EXPECT_EQ(shown([this] { output.on_output(0, Stream::out, "lo\nwor"); }).out, "h1: hello\n");
  EXPECT_EQ(shown([this] { output.on_output(0, Stream::out, "ld\n"); }).out, "h1: world\n");
}

TEST_F(Streamed, PartsOfSeveralHostsAndStreamsAreNotMixed) {
  const Shown result = shown([this] {
    output.on_output(0, Stream::out, "a");
    output.on_output(1, Stream::out, "b");
    output.on_output(0, Stream::err, "c");
    output.on_output(1, Stream::out, "B\n");
    output.on_output(0, Stream::out, "A\n");
    output.on_output(0, Stream::err, "C\n");
  });
  EXPECT_EQ(result.out, "h2: bB\nh1: aA\n");
  EXPECT_EQ(result.err, "h1: cC\n");
}

TEST_F(Streamed, ALastLineWithoutItsEndIsShownWithTheResult) {
  const Shown result = shown([this] {
    output.on_output(0, Stream::out, "no newline");
    output.on_output(0, Stream::err, "nor here");
    output.on_result(0, answered(""));
    output.on_result(0, answered(""));
  });
  EXPECT_EQ(result.out, "h1: no newline\n");
  EXPECT_EQ(result.err, "h1: nor here\n");
}

TEST_F(Streamed, EmptyLinesAndBytesOfAnyKindPass) {
  const std::string binary("\n\n\0\xff\r\n", 6);
  EXPECT_EQ(shown([&] { output.on_output(0, Stream::out, binary); }).out,
            std::string("h1: \nh1: \nh1: \0\xff\r\n", 18));
  EXPECT_EQ(shown([&] { output.on_output(0, Stream::err, "\n"); }).err, "h1: \n");
  EXPECT_EQ(shown([&] { output.on_output(0, Stream::out, ""); }).out, "");
}

TEST_F(Streamed, ALineWithoutEndIsShownInPiecesAndNotGathered) {
  constexpr std::size_t kChunk = 32'768;
  std::size_t bytes = 0;
  std::size_t lines = 0;
  for (int i = 0; i < 100; ++i) {
    const Shown result =
        shown([this] { output.on_output(0, Stream::out, std::string(kChunk, 'x')); });
    bytes += static_cast<std::size_t>(std::count(result.out.begin(), result.out.end(), 'x'));
    lines += static_cast<std::size_t>(std::count(result.out.begin(), result.out.end(), '\n'));
  }
  EXPECT_GE(bytes, 98 * kChunk / 2);
  EXPECT_GE(lines, 2U);
  EXPECT_LE(lines, 4U);
}

TEST_F(Streamed, AnInterruptNamesWhomItWaitsFor) {
  EXPECT_EQ(
      shown([this] {
        output.on_interrupt({0, 1});
      }).err,
      "interrupted: nothing more is started; waiting for h[1-2] (Ctrl-C again leaves them)\n");
  EXPECT_EQ(shown([this] { output.on_interrupt({}); }).err, "interrupted\n");
}

TEST(StreamedPrefixes, AreThoseThatWereGiven) {
  Console console;
  const FakeRemote remote("h[1-2]");
  StreamedOutput output(console, remote.hosts(), "", {"machine0", "machine1"});
  EXPECT_EQ(shown([&] { output.on_output(1, Stream::out, "x\n"); }).out, "machine1: x\n");
}

TEST(StreamedPrefixes, ColorsStandAroundTheHostAlone) {
  Console console;
  console.configure({Color::always, false, false});
  const FakeRemote remote("h1");
  StreamedOutput output(console, remote.hosts(), "");
  EXPECT_EQ(shown([&] { output.on_output(0, Stream::out, "x\n"); }).out, "\x1b[34mh1:\x1b[0m x\n");
}

class Folded : public testing::Test {
 protected:
  std::string print() {
    return shown([this] { output.print(); }).out;
  }

  const std::string rule = std::string(20, '-') + "\n";
  Console console;
  FakeRemote remote{"h[1-4]"};
  FoldedOutput output{console, remote.hosts(), "answered"};
};

TEST_F(Folded, IdenticalOutputsStandOnceUnderTheirHosts) {
  for (const std::size_t host : {3U, 0U, 1U}) output.on_output(host, Stream::out, "same\n");
  output.on_output(2, Stream::out, "other\n");
  EXPECT_EQ(print(), rule + "h[1-2,4] (3)\n" + rule + "same\n" + rule + "h3\n" + rule + "other\n");
}

TEST_F(Folded, HowTheBytesCameMakesNoDifference) {
  output.on_output(0, Stream::out, "a\nb\n");
  for (const char* part : {"a", "\n", "b\n"}) output.on_output(1, Stream::out, part);
  EXPECT_EQ(print(), rule + "h[1-2] (2)\n" + rule + "a\nb\n");
}

TEST_F(Folded, BothStreamsStandInTheOrderOfArrival) {
  output.on_output(0, Stream::out, "1\n");
  output.on_output(0, Stream::err, "2\n");
  output.on_output(0, Stream::out, "3\n");
  EXPECT_EQ(print(), rule + "h1\n" + rule + "1\n2\n3\n");
}

TEST_F(Folded, AnOutputWithoutItsLastLineEndIsGivenOne) {
  output.on_output(0, Stream::out, "x");
  output.on_output(1, Stream::out, "y\n");
  EXPECT_EQ(print(), rule + "h1\n" + rule + "x\n" + rule + "h2\n" + rule + "y\n");
}

TEST_F(Folded, HostsWithoutAWordAreLeftOut) {
  output.on_output(0, Stream::out, "");
  output.on_result(0, answered(""));
  EXPECT_EQ(print(), "");
}

}  // namespace
}  // namespace dtool::cli
