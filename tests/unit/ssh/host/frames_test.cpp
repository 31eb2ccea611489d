// SPDX-License-Identifier: MIT
// Messages cross whole or not at all, whatever the pieces in which they come.
#include "ssh/host/frames.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <thread>

#include "ssh/host/files.h"
#include "ssh/host/messages/run.h"

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
