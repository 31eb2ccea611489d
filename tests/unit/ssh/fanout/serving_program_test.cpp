// SPDX-License-Identifier: MIT
// dtool-host, the real one, is started once for all commands that follow each other.
#include "ssh/fanout/serving_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/wire/check.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/run.h"
#include "tests/unit/run_in.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using tests::run_in;
using tests::TemporaryFolder;
using tests::TemporaryVariable;

/// This machine, counting the log-in shells.
class CountingConnection : public Connection {
 public:
  explicit CountingConnection(Reactor& reactor) : machine_(make_local_connection(reactor)) {}

  asio::awaitable<int> execute(std::string line, CommandStreams streams,
                               Deadline deadline) override {
    ++shells;
    co_return co_await machine_->execute(line, streams, deadline);
  }
  void abandon() override { machine_->abandon(); }
  void expire() override { machine_->expire(); }
  bool is_usable() const override { return true; }

  int shells = 0;

 private:
  std::unique_ptr<Connection> machine_;
};

class ServingProgramTest : public testing::Test {
 protected:
  ServingProgramTest() {
    ask(host::StatusRequest(), Follows::nothing);  // brings it
    connection.shells = 0;
  }
  ~ServingProgramTest() override { run_in(reactor, program.end()); }

  asio::awaitable<bool> write(const std::string& frames, int pipe) {
    const std::string_view bytes = frames;
    const bool is_taken = co_await write_all(reactor, pipe, bytes, kNoDeadline);
    co_return is_taken&& can_write;
  }

  /// The exit code; `out` is the reply.
  int ask_with(std::string frames, Follows follows, Deadline deadline = kNoDeadline) {
    out.clear();
    HostRequests requests;
    requests.write = [this, &frames](int pipe) { return write(frames, pipe); };
    requests.on_output = [this](Stream stream, std::string_view bytes) {
      if (stream == Stream::out) out += bytes;
    };
    requests.are_followed = follows == Follows::more;
    return run_in(reactor, program.answer(std::move(requests), log_in_said, deadline));
  }

  template <typename Request>
  int ask(const Request& request, Follows follows) {
    return ask_with(host::to_frame(request), follows);
  }

  template <typename Reply>
  Reply reply() const {
    host::FrameReader reader;
    reader.add(out);
    const auto frame = reader.next();
    EXPECT_TRUE(frame);
    EXPECT_FALSE(reader.is_inside()) << "more than the reply";
    return host::open<Reply>(frame.value_or(host::Frame()));
  }

  TemporaryFolder home;
  TemporaryVariable home_variable{"HOME", home.path()};
  Reactor reactor;
  CountingConnection connection{reactor};
  ServingProgram program{reactor, connection};
  std::string out;
  std::string log_in_said;
  bool can_write = true;
};

TEST_F(ServingProgramTest, CommandsThatFollowEachOtherTakeOneShell) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
    reply<host::StatusReply>();
    EXPECT_TRUE(program.is_running());
  }
  EXPECT_EQ(ask(host::StatusRequest(), Follows::nothing), 0);
  reply<host::StatusReply>();
  EXPECT_FALSE(program.is_running());
  EXPECT_EQ(connection.shells, 1);
  EXPECT_EQ(ask(host::StatusRequest(), Follows::nothing), 0);
  EXPECT_EQ(connection.shells, 2);
}

TEST_F(ServingProgramTest, OneThatRefusesHasEndedAndTheNextIsStarted) {
  const int exit_code =
      ask_with(host::to_frame(host::Kind::package_bytes, "no request"), Follows::more);
  EXPECT_EQ(exit_code, 2);
  EXPECT_THROW(reply<host::StatusReply>(), host::BadMessage);
  EXPECT_FALSE(program.is_running());
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  EXPECT_EQ(connection.shells, 2);
}

TEST_F(ServingProgramTest, WhatOneCommandMadeOfTheEnvironmentIsNotTheNextOnes) {
  host::CheckRequest request;
  request.environment.text = "printf 'ready\\n0\\0PATH=/nonexistent\\0'";
  EXPECT_EQ(ask(request, Follows::more), 0);
  EXPECT_TRUE(reply<host::CheckReply>().is_environment_ready);
  request = {};
  request.is_survey = true;
  EXPECT_EQ(ask(request, Follows::more), 0);
  EXPECT_NE(reply<host::CheckReply>().survey.value().rsync, "");
  EXPECT_EQ(connection.shells, 1);
}

TEST_F(ServingProgramTest, OneThatIsLostUnseenIsStartedAgain) {
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  connection.abandon();  // its end is seen as the event loop runs
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  reply<host::StatusReply>();
  EXPECT_EQ(connection.shells, 2);
}

TEST_F(ServingProgramTest, OneThatWasKilledMeanwhileIsStartedAgain) {
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  connection.abandon();
  for (int i = 0; i < 200 && program.is_running(); ++i)
    run_in(reactor, reactor.sleep(std::chrono::milliseconds(10)));
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  reply<host::StatusReply>();
  EXPECT_EQ(connection.shells, 2);
}

TEST_F(ServingProgramTest, ARequestThatCouldNotBeWrittenWholeIsNotWaitedFor) {
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  can_write = false;
  const std::string half = host::to_frame(host::StatusRequest()).substr(0, 8);
  EXPECT_NE(ask_with(half, Follows::more, after(std::chrono::minutes(1))), 0);
  EXPECT_FALSE(program.is_running());
}

TEST_F(ServingProgramTest, ACommandThatTakesTooLongIsToldSo) {
  EXPECT_EQ(ask(host::StatusRequest(), Follows::more), 0);
  const std::string half = host::to_frame(host::KillRequest()).substr(0, 8);
  try {
    ask_with(half, Follows::nothing, after(std::chrono::hours(0)));
    FAIL() << "it was answered";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::timed_out);
  }
  EXPECT_FALSE(program.is_running());
}

}  // namespace
}  // namespace dtool::ssh
