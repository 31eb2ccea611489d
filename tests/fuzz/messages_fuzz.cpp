// SPDX-License-Identifier: MIT
// Every message between dtool and dtool-host, right and spoilt: it is read as what was written, or
// refused.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ssh/trace.h"
#include "ssh/wire/check.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/push.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"
#include "tests/fuzz/mutate.h"

namespace dtool {
namespace {

using namespace std::string_literals;

const std::vector<std::string> kTokens = {"\0\0\0\0\0\0\0\0"s,
                                          "\1\0\0\0\0\0\0\0"s,
                                          "\xff\xff\xff\xff\xff\xff\xff\xff",
                                          "\xff\xff\xff\xff\xff\xff\xff\x7f",
                                          "\0\0\0\0\1\0\0\0"s,
                                          "\0",
                                          "\1",
                                          "\2",
                                          "\x1b[2J",
                                          "\xc2\x9b",
                                          "$(id)",
                                          "../",
                                          "\n"};

/// Gives every field of a message some value.
class Filler {
 public:
  explicit Filler(unsigned seed) : random_(seed) {}

  void fill(bool& value) { value = random_() % 2 == 0; }

  template <typename Number>
  requires(std::is_integral_v<Number> && !std::is_same_v<Number, bool>) void fill(Number& value) {
    constexpr std::int64_t kSome[] = {0, 1, -1, 4711, 1 << 20, INT64_MAX, INT64_MIN};
    value = static_cast<Number>(kSome[random_() % std::size(kSome)]);
  }

  void fill(std::string& value) {
    value.clear();
    for (auto left = random_() % 4; left > 0; --left) value += kTokens[random_() % kTokens.size()];
  }

  template <typename Value>
  void fill(std::vector<Value>& values) {
    values.clear();
    for (auto left = random_() % 4; left > 0; --left) fill(values.emplace_back());
  }

  template <typename Value>
  void fill(std::optional<Value>& value) {
    value.reset();
    if (random_() % 2 == 0) fill(value.emplace(Value{}));
  }

  template <host::Fielded Struct>
  void fill(Struct& value) {
    host::visit_fields(value, [this](auto& each) { this->fill(each); });
  }

 private:
  std::mt19937 random_;
};

std::set<int>& seen_kinds() {
  static std::set<int> kinds;
  return kinds;
}

template <typename Message>
void read_spoilt() {
  seen_kinds().insert(static_cast<int>(Message::kKind));
  std::vector<std::string> bodies;
  for (unsigned i = 0; i < 8; ++i) {
    Message message;
    Filler(fuzz::seed() + i).fill(message);
    bodies.push_back(host::encode(message));
    EXPECT_EQ(host::encode(host::decode<Message>(bodies.back())), bodies.back());
  }
  fuzz::Mutator mutator(bodies, kTokens);
  const fuzz::Tally tally = fuzz::feed<host::BadMessage>(mutator, 400, [](const std::string& body) {
    // The trace reads it too, and must refuse nothing.
    EXPECT_FALSE(ssh::describe({Message::kKind, body}).empty());
    EXPECT_EQ(host::encode(host::decode<Message>(body)), body);
  });
  EXPECT_GT(tally.taken, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(MessagesFuzz, EachIsReadAsItWasWrittenOrRefused) {
  using namespace host;
#define DTOOL_MESSAGE(number, name, Message, longest) read_spoilt<Message>();
#define DTOOL_BYTES(number, name, longest) seen_kinds().insert(number);
#include "ssh/wire/kinds.def"
  for (int kind = 0; kind < 1000; ++kind) {
    EXPECT_EQ(longest_body(static_cast<Kind>(kind)) > 0, seen_kinds().contains(kind)) << kind;
  }
}

}  // namespace
}  // namespace dtool
