// SPDX-License-Identifier: MIT
// What many hosts get is made once, and each gets all of it.
#include "ssh/fanout/remote_shell.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"
#include "tests/unit/run_in.h"

namespace dtool::ssh {
namespace {

using tests::run_in;

class SharedOutputTest : public testing::Test {
 protected:
  asio::awaitable<void> send(SharedOutput& output, std::string before, OwnedFd pipe) {
    std::function<void(const Transferred&)> on_sent = [this, &output](const Transferred& sent) {
      if (lets_go) output.let_go(sent.bytes);
    };
    co_await output.send(pipe.get(), before, &kNoDeadline, on_sent);
  }

  asio::awaitable<void> read(OwnedFd pipe, std::string& into) {
    std::function<void(std::string_view)> on_bytes = [&into](std::string_view bytes) {
      into += bytes;
    };
    co_await read_all(reactor, pipe.get(), on_bytes, &kNoDeadline);
  }

  /// What each of the readers got, before which `befores` were sent.
  std::vector<std::string> sent(const SharedBytes& bytes, const std::vector<std::string>& befores) {
    std::vector<std::string> got(befores.size());
    SharedOutput output(reactor, bytes, bytes.most_unsent);
    TaskGroup group(reactor);
    for (std::size_t i = 0; i < befores.size(); ++i) {
      Pipe pipe = make_pipe(NonBlocking::both);
      group.spawn(send(output, befores[i], std::move(pipe.writer)));
      group.spawn(read(std::move(pipe.reader), got[i]));
    }
    run_in(reactor, group.join());
    return got;
  }

  Reactor reactor;
  bool lets_go = false;  ///< of what the last reader has taken
};

TEST_F(SharedOutputTest, EachReaderGetsAllOfItBehindItsOwnWords) {
  const std::string large(3'000'000, '\0');
  std::vector<std::pair<std::uint64_t, std::string>> told;
  SharedBytes bytes;
  bytes.make = [&large](const SharedBytes::Write& write) {
    write("abc");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    write(large);
    write("def");
  };
  bytes.on_whole = [&told](std::uint64_t size, const std::string& sha256) {
    told.emplace_back(size, sha256);
  };
  const auto got = sent(bytes, {"to the first ", "to the second "});
  EXPECT_EQ(got[0], "to the first abc" + large + "def");
  EXPECT_EQ(got[1], "to the second abc" + large + "def");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].first, 3'000'006U);
  Sha256 digest;
  digest.add("abc" + large + "def");
  EXPECT_EQ(told[0].second, digest.hex());
}

TEST_F(SharedOutputTest, WhatCannotBeMadeIsThisMachinesFault) {
  SharedBytes bytes;
  bytes.make = [](const SharedBytes::Write& write) {
    write("abc");
    throw std::runtime_error("the file is gone");
  };
  try {
    sent(bytes, {""});
    FAIL() << "it was made";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::local_program);
    EXPECT_STREQ(error.what(), "the file is gone");
  }
}

TEST_F(SharedOutputTest, WhatNobodyHasTakenHoldsBackWhatMakesIt) {
  constexpr std::size_t kPiece = 1U << 20U;
  std::atomic<std::size_t> made = 0;
  SharedBytes bytes;
  bytes.make = [&made](const SharedBytes::Write& write) {
    const std::string piece(kPiece, 'x');
    for (int i = 0; i < 64; ++i, made += kPiece) write(piece);
  };
  const auto wait_for = [&made](std::size_t wanted) {
    while (made < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  SharedOutput output(reactor, bytes, 16 * kPiece);
  wait_for(16 * kPiece);
  EXPECT_EQ(made, 16 * kPiece);
  output.let_go(9 * kPiece);
  wait_for(24 * kPiece);
  EXPECT_EQ(made, 24 * kPiece);
}

TEST_F(SharedOutputTest, WhatIsLetGoHasArrived) {
  std::string large(48U << 20U, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i % 251 + 1);
  SharedBytes bytes;
  bytes.most_unsent = 16U << 20U;
  bytes.make = [&large](const SharedBytes::Write& write) {
    for (std::size_t at = 0; at < large.size(); at += 65'536)
      write(std::string_view(large).substr(at, 65'536));
  };
  lets_go = true;
  EXPECT_TRUE(sent(bytes, {""}).front() == large);
}

}  // namespace
}  // namespace dtool::ssh
