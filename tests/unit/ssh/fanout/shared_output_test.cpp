// SPDX-License-Identifier: MIT
// What many hosts get is made once, and each gets all of it.
#include "ssh/fanout/remote_shell.h"

#include <gtest/gtest.h>

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
    std::function<void(const Transferred&)> on_sent = [](const Transferred&) {};
    co_await output.send(pipe.get(), before, kNoDeadline, on_sent);
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
    SharedOutput output(reactor, bytes);
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

}  // namespace
}  // namespace dtool::ssh
