// SPDX-License-Identifier: MIT
// Messages cross whole or not at all, whatever the pieces in which they come.
#include "ssh/host/frame_input.h"
#include "ssh/wire/protocol.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <thread>

#include "ssh/host/files.h"
#include "ssh/wire/run.h"

namespace dtool::host {
namespace {

KillReply example() {
  KillReply reply;
  reply.ended = 3;
  reply.forced = -1;
  reply.left = {"12 sleep 9", "", std::string("a\0b", 3)};
  reply.host = "h";
  reply.unseen = {"tmux"};
  return reply;
}

TEST(Frames, BringEveryFieldBack) {
  FrameReader reader;
  reader.add(to_frame(example()));
  const auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_FALSE(reader.is_inside());
  const auto reply = open<KillReply>(*frame);
  EXPECT_EQ(reply.ended, 3);
  EXPECT_EQ(reply.forced, -1);
  EXPECT_EQ(reply.left, example().left);
  EXPECT_EQ(reply.host, "h");
  EXPECT_EQ(reply.unseen, example().unseen);
}

TEST(Frames, ComeInPiecesOfAnySize) {
  const std::string stream = to_frame(example()) + to_frame(Fault{"no"});
  for (std::size_t size = 1; size < stream.size(); ++size) {
    FrameReader reader;
    int frames = 0;
    for (std::size_t at = 0; at < stream.size(); at += size) {
      reader.add(stream.substr(at, size));
      while (reader.next()) ++frames;
    }
    EXPECT_EQ(frames, 2) << size;
  }
}

TEST(Frames, AFaultWithoutWordsIsAnErrorWithSome) {
  for (const std::string& sentence : {std::string(), std::string(1, '\0')}) {
    try {
      open<KillReply>({Kind::fault, encode(Fault{sentence})});
      FAIL() << "it was taken for a reply";
    } catch (const BadMessage& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
}

TEST(Frames, AFaultIsSaidInTheWordsOfTheHost) {
  try {
    open<KillReply>({Kind::fault, encode(Fault{"the disk is full"})});
    FAIL();
  } catch (const BadMessage& error) {
    EXPECT_STREQ(error.what(), "the disk is full");
  }
}

TEST(Frames, AnUnknownKindEndsTheReading) {
  FrameReader reader;
  reader.add(std::string("\1\0\0\0\xff\x7f!", 7));
  EXPECT_THROW(reader.next(), BadMessage);
}

TEST(Frames, ALengthThatNoMessageMayHaveEndsTheReadingBeforeItIsThere) {
  FrameReader reader;
  reader.add(std::string("\xff\xff\xff\xff\3\0", 6));
  EXPECT_THROW(reader.next(), BadMessage);
}

TEST(Frames, AnUnknownKindEndsTheReadingEvenWithoutABody) {
  FrameReader reader;
  reader.add(std::string("\0\0\0\0\xff\x7f", 6));
  EXPECT_THROW(reader.next(), BadMessage);
}

TEST(Frames, ABodyMayBeAsLongAsItsKindAllowsAndNoByteLonger) {
  const std::size_t most = longest_body(Kind::fault);
  FrameReader reader;
  reader.add(to_frame(Kind::fault, std::string(most, 'x')));
  EXPECT_EQ(reader.next().value().body.size(), most);
  EXPECT_THROW(to_frame(Kind::fault, std::string(most + 1, 'x')), BadMessage);
  reader.add(number_bytes(most + 1, 4) + number_bytes(static_cast<unsigned>(Kind::fault), 2));
  EXPECT_THROW(reader.next(), BadMessage);
}

TEST(Frames, OneWithoutABodyIsWhole) {
  FrameReader reader;
  reader.add(to_frame(EndOfRequests()));
  const auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, Kind::end_of_requests);
  EXPECT_EQ(frame->body, "");
  EXPECT_FALSE(reader.is_inside());
  reader.add("x");
  EXPECT_TRUE(reader.is_inside());
}

TEST(Frames, AnErrorSaysWhichKindItWasAndHowLongItMayBe) {
  const auto error_of = [](Kind kind, std::size_t size) -> std::string {
    try {
      to_frame(kind, std::string(size, 'x'));
    } catch (const BadMessage& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(static_cast<Kind>(30000), 0), "there is no message of kind 30000");
  const std::string kind = std::to_string(static_cast<int>(Kind::end_of_requests));
  EXPECT_EQ(error_of(Kind::end_of_requests, 65537),
            "a message of kind " + kind + " has 65537 bytes, and may have 65536");
}

/// A stream whose other end is still open.
struct OpenStream {
  OpenStream() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    reader = Descriptor(ends[0]);
    writer = Descriptor(ends[1]);
  }

  Descriptor reader;
  Descriptor writer;
};

TEST(FrameInput, HasTheFramesUntilTheStreamEnds) {
  OpenStream stream;
  FrameInput input(stream.reader.get());
  write_all(stream.writer.get(), to_frame(Fault{"one"}) + to_frame(example()));
  EXPECT_EQ(input.next(std::chrono::hours(1)).value().kind, Kind::fault);
  EXPECT_EQ(input.next().value().kind, Kind::kill_reply);
  stream.writer = Descriptor();
  EXPECT_FALSE(input.next(std::chrono::hours(1)));
}

TEST(FrameInput, AStreamThatEndsInsideAFrameIsRefused) {
  OpenStream stream;
  FrameInput input(stream.reader.get());
  write_all(stream.writer.get(), to_frame(example()).substr(0, 10));
  stream.writer = Descriptor();
  EXPECT_THROW(input.next(), BadMessage);
}

TEST(FrameInput, LosesItsPatience) {
  const OpenStream stream;
  FrameInput input(stream.reader.get());
  int waits = 0;
  input.set_on_wait([&](auto waited) { EXPECT_EQ(waited, std::chrono::seconds(++waits)); });
  try {
    input.next(std::chrono::milliseconds(1000));
    FAIL() << "there was a frame";
  } catch (const BadMessage& error) {
    EXPECT_STREQ(error.what(), "no byte more for 1 s");
  }
  EXPECT_EQ(waits, 0);
}

TEST(FrameInput, TakesNoSignalForAByte) {
  const OpenStream stream;
  ::fcntl(stream.reader.get(), F_SETFL, O_NONBLOCK);
  FrameInput input(stream.reader.get());
  struct sigaction heard {};
  heard.sa_handler = [](int) {};
  struct sigaction before {};
  ::sigaction(SIGALRM, &heard, &before);
  const itimerval soon{{0, 0}, {0, 50'000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  EXPECT_THROW(input.next(std::chrono::milliseconds(200)), BadMessage);
  ::sigaction(SIGALRM, &before, nullptr);
}

TEST(FrameInput, TellsEachSecondThatItWaits) {
  const OpenStream stream;
  FrameInput input(stream.reader.get());
  input.set_on_wait([](auto waited) {
    if (waited == std::chrono::seconds(2)) throw std::out_of_range("enough");
  });
  EXPECT_THROW(input.next(std::chrono::hours(1)), std::out_of_range);
}

TEST(FrameInput, PassesOverNothingUnlessItWasLeft) {
  OpenStream stream;
  write_all(stream.writer.get(), to_frame(EndOfRequests()));
  FrameInput input(stream.reader.get());
  EXPECT_FALSE(input.skip_to_end_of_requests());
  EXPECT_EQ(input.next().value().kind, Kind::end_of_requests);
}

/// What is left of `frames` after an answer that did not want all of them.
bool finds_end(const std::string& frames) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const Descriptor reader(ends[0]);
  std::thread writing([writer = ends[1], &frames] {
    [[maybe_unused]] const ssize_t size = ::write(writer, frames.data(), frames.size());
    ::close(writer);
  });
  FrameInput input(reader.get());
  input.next();
  input.leave();
  EXPECT_FALSE(input.next());
  const bool is_found = input.skip_to_end_of_requests();
  const auto following = is_found ? input.next() : std::nullopt;
  EXPECT_EQ(is_found, following && following->kind == Kind::kill_reply);
  while (read_some(reader.get())) continue;
  writing.join();
  return is_found;
}

TEST(FrameInput, PassesOverWhatItLeftUpToTheEndOfTheRequests) {
  const std::string first = to_frame(Fault{"first"});
  const std::string end = to_frame(EndOfRequests()) + to_frame(example());
  const std::string large = to_frame(Kind::package_bytes, std::string(600'000, 'x'));
  EXPECT_TRUE(finds_end(first + end));
  EXPECT_TRUE(finds_end(first + to_frame(Fault{"second"}) + large + end));
  EXPECT_FALSE(finds_end(first + large + large + end)) << "that is much";
  EXPECT_FALSE(finds_end(first));
  const std::string half = to_frame(Kind::package_bytes, std::string(std::size_t{1} << 19U, 'x'));
  EXPECT_TRUE(finds_end(first + half + half + end));
  EXPECT_FALSE(finds_end(first + half + half + to_frame(Kind::package_bytes, "x") + end));
}

TEST(Messages, ThatEndTooSoonOrTooLateAreRefused) {
  const std::string whole = encode(example());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(decode<KillReply>(whole.substr(0, size)), BadMessage) << size;
  EXPECT_THROW(decode<KillReply>(whole + "x"), BadMessage);
}

TEST(Messages, ALengthAloneAsksForNoMemory) {
  Encoder encoder;
  encoder.put(std::uint64_t{1} << 40U);
  EXPECT_THROW(decode<Fault>(encoder.take()), BadMessage);
}

/// Counts how many were made.
struct Counted {
  static inline int made = 0;
  std::string text = (++made, "");

  void fields(auto visit) { visit(text); }
};

TEST(Messages, AnElementOfAListIsMadeOnlyOnceItsBytesAreThere) {
  Counted::made = 0;
  Encoder encoder;
  encoder.put(std::uint64_t{1000});
  encoder.put(std::string(992, 'x'));  // the first element; there is no second one
  const std::string bytes = encoder.take();
  Decoder decoder(bytes);
  std::vector<Counted> list;
  EXPECT_THROW(decoder.get(list), BadMessage);
  EXPECT_LE(Counted::made, 2);
}

/// A list of it costs no byte for each element.
struct Empty {
  void fields(auto visit) { visit(); }
};

TEST(Messages, AListOfEmptyElementsIsNotLongerThanItsMessage) {
  const std::string bytes = encode(std::uint64_t{1} << 40U);
  Decoder decoder(bytes);
  std::vector<Empty> list;
  EXPECT_THROW(decoder.get(list), BadMessage);
}

/// `second` would not cross.
struct Forgetful {
  std::string first;
  std::optional<std::int64_t> second;

  void fields(auto visit) { visit(first); }
};

TEST(Messages, AStructThatForgetsAFieldIsSeen) {
  static_assert(has_fields<Forgetful, 2>);
  static_assert(!has_fields<Forgetful, 1>);
  static_assert(!has_fields<Forgetful, 3>);
  static_assert(has_fields<KillReply, 11>);
}

TEST(Messages, ANumberThatDoesNotFitIsRefused) {
  Encoder encoder;
  encoder.put(std::numeric_limits<std::int64_t>::max());
  const std::string bytes = encoder.take();
  Decoder decoder(bytes);
  std::int32_t number = 0;
  EXPECT_THROW(decoder.get(number), BadMessage);
}

TEST(Messages, OptionalValuesAndListsOfListsComeBack) {
  Encoder encoder;
  encoder.put(std::optional<std::string>("x"));
  encoder.put(std::optional<std::int64_t>());
  encoder.put(std::vector<std::vector<std::string>>{{"a"}, {}, {"b", "c"}});
  const std::string bytes = encoder.take();
  Decoder decoder(bytes);
  std::optional<std::string> text;
  std::optional<std::int64_t> number = 1;
  std::vector<std::vector<std::string>> lists;
  decoder.get(text);
  decoder.get(number);
  decoder.get(lists);
  EXPECT_EQ(text, "x");
  EXPECT_FALSE(number);
  EXPECT_EQ(lists, (std::vector<std::vector<std::string>>{{"a"}, {}, {"b", "c"}}));
}

}  // namespace
}  // namespace dtool::host
