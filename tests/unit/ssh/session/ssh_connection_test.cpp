// SPDX-License-Identifier: MIT
// Commands over a real session, with a server on loopback.
#include "ssh/session/ssh_connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "ssh/script.h"
#include "ssh/scripts.h"
#include "ssh/session/connector.h"
#include "tests/unit/ssh/login.h"

namespace dtool::ssh {
namespace {

using tests::error_of;
using tests::run_in;

class Commands : public testing::Test {
 protected:
  Commands() { rules_.let_in = {log_in_.make_key("key")}; }

  SshConnection& connection() {
    if (connection_ == nullptr) {
      server_ = std::make_unique<tests::SshServer>(rules_);
      connection_ = std::make_unique<SshConnection>(
          log_in_.reactor(),
          log_in_.log_in(*server_, "IdentityFile " + log_in_.at("key").string() + "\n"));
    }
    return *connection_;
  }

  int run(const std::string& line, CommandStreams streams = {},
          std::chrono::milliseconds limit = std::chrono::seconds(30)) {
    out_.clear();
    err_.clear();
    if (streams.output_fd < 0) {
      streams.on_output = [this](Stream stream, std::string_view bytes) {
        (stream == Stream::out ? out_ : err_) += bytes;
      };
    }
    SshConnection& connected = connection();
    return run_in(log_in_.reactor(), connected.execute(line, std::move(streams), after(limit)));
  }

  std::pair<Failure, std::string> error(const std::string& line) {
    return error_of([&] { run(line); });
  }

  int heard(const std::string& text) const {
    const auto all = server_->heard();
    return static_cast<int>(std::ranges::count(all, text));
  }

  tests::LogIn log_in_;
  tests::ServerRules rules_;
  std::unique_ptr<tests::SshServer> server_;
  std::unique_ptr<SshConnection> connection_;
  std::string out_, err_;
};

TEST_F(Commands, OutputAndExitCodeArrive) {
  EXPECT_EQ(run("say one; complain two; say three; exit 3"), 3);
  EXPECT_EQ(out_, "one\nthree\n");
  EXPECT_EQ(err_, "two\n");
  EXPECT_EQ(run("complain only; exit 0"), 0);
  EXPECT_EQ(out_ + err_, "only\n");
  EXPECT_EQ(heard("session"), 2);
  EXPECT_EQ(run("fill 1; exit 0"), 0);
  EXPECT_EQ(out_, "x");
  EXPECT_TRUE(connection().is_usable());
}

TEST_F(Commands, ASignalIs128AndItsNumber) {
  const std::map<std::string, int> numbers = {
      {"HUP", 1},   {"INT", 2},   {"QUIT", 3},  {"ILL", 4},   {"ABRT", 6},
      {"FPE", 8},   {"KILL", 9},  {"USR1", 10}, {"SEGV", 11}, {"USR2", 12},
      {"PIPE", 13}, {"ALRM", 14}, {"TERM", 15}, {"ODD", 127}};
  for (const auto& [name, number] : numbers) EXPECT_EQ(run("die " + name), 128 + number) << name;
}

TEST_F(Commands, InputArrivesWhole) {
  for (const std::size_t size : {0, 1, 32'768, 40'000, 3'000'000}) {
    CommandStreams streams;
    streams.input = std::string(size, 'y');
    EXPECT_EQ(run("count; exit 0", streams), 0);
    EXPECT_EQ(out_, std::to_string(size) + "\n");
  }
}

TEST_F(Commands, InputMayComeFromADescriptorAndOutputGoToOne) {
  int in[2], out[2], err[2];
  for (int* pipe : {in, out, err}) ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const OwnedFd in_end(in[0]), out_end(out[0]), err_end(err[0]);
  OwnedFd in_begin(in[1]), out_begin(out[1]), err_begin(err[1]);
  ASSERT_EQ(::write(in[1], "hello", 5), 5);
  asio::steady_timer later(log_in_.reactor().context(), std::chrono::milliseconds(50));
  connection();
  later.async_wait([&](boost::system::error_code) {
    EXPECT_EQ(::write(in_begin.get(), " you", 4), 4);
    in_begin.reset();
  });
  CommandStreams streams;
  streams.input = "not this";
  streams.input_fd = in[0];
  streams.output_fd = out[1];
  streams.error_fd = err[1];
  EXPECT_EQ(run("count; complain bad; exit 0", std::move(streams)), 0);
  std::string text(100, '\0');
  EXPECT_EQ(text.substr(0, static_cast<std::size_t>(::read(out[0], text.data(), 100))), "9\n");
  EXPECT_EQ(text.substr(0, static_cast<std::size_t>(::read(err[0], text.data(), 100))), "bad\n");
}

TEST_F(Commands, ACommandMayEndBeforeItsInput) {
  int in[2];
  ASSERT_EQ(::pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
  const OwnedFd end(in[0]), begin(in[1]);
  CommandStreams streams;
  streams.input_fd = in[0];
  EXPECT_EQ(run("exit 4", std::move(streams), std::chrono::hours(1)), 4);
}

TEST_F(Commands, InputArrivesWholeThoughKeysAreExchangedAnewMeanwhile) {
  server_ = std::make_unique<tests::SshServer>(rules_);
  Reactor& reactor = log_in_.reactor();
  const Deadline deadline = after(std::chrono::seconds(60));
  Endpoint endpoint;
  endpoint.user = "ann";
  endpoint.key_name = "gpu1";
  endpoint.identity_files = {log_in_.at("key")};
  KnownHosts known_hosts;
  auto session = std::make_unique<Session>(
      reactor, endpoint,
      run_in(reactor, connect_tcp(reactor, "127.0.0.1", static_cast<std::uint16_t>(server_->port()),
                                  deadline)),
      known_hosts);
  const std::uint64_t limit = 1'000'000;
  ASSERT_EQ(::ssh_options_set(session->handle(), SSH_OPTIONS_REKEY_DATA, &limit), SSH_OK);
  run_in(reactor, session->exchange_keys(deadline));
  IdentityCache identities;
  run_in(reactor, session->authenticate(identities, deadline));
  connection_ = std::make_unique<SshConnection>(reactor, std::move(session));
  CommandStreams streams;
  streams.input = std::string(3'500'000, 'y');
  EXPECT_EQ(run("count; exit 0", streams), 0);
  EXPECT_EQ(out_, "3500000\n");
}

TEST_F(Commands, MuchOutputArrivesWhole) {
  EXPECT_EQ(run("fill 5000000; exit 0"), 0);
  EXPECT_EQ(out_.size(), 5'000'000u);
}

TEST_F(Commands, TheOutputOfALogInShellIsLeftOutIfAsked) {
  const std::string mark = "say dtool-command-begins; say mine; exit 0";
  const std::string line = behind_mark("x");
  CommandStreams streams;
  streams.shell_output = ShellOutput::leave_out;
  EXPECT_EQ(run("x", streams), 0);
  EXPECT_EQ(heard("exec " + line), 1);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(run("complain bad; say good; exit 2", streams), 2);
  EXPECT_EQ(out_, "good\n");
  EXPECT_EQ(err_, "bad\n");
  EXPECT_EQ(run("say greeting; " + mark), 0);
  EXPECT_EQ(out_, "greeting\ndtool-command-begins\nmine\n");
}

TEST_F(Commands, ARefusedSessionIsAskedForAgain) {
  rules_.refused_sessions = 3;
  EXPECT_EQ(run("exit 1"), 1);
  EXPECT_EQ(heard("session"), 4);
}

TEST_F(Commands, AServerThatOpensNoSessionIsNotAskedForLong) {
  rules_.refused_sessions = 1000;
  const auto began = Clock::now();
  const Failure failure =
      error_of([&] { run("exit 1", {}, std::chrono::milliseconds(300)); }).first;
  EXPECT_EQ(failure, Failure::connection_lost);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(10));
  EXPECT_GE(heard("session"), 4);
  EXPECT_LE(heard("session"), 5);
}

TEST_F(Commands, ASessionThatWasOpenedAheadIsUsedOnce) {
  run_in(log_in_.reactor(), connection().open_ahead(after(std::chrono::seconds(30))));
  EXPECT_EQ(heard("session"), 1);
  EXPECT_EQ(run("exit 2"), 2);
  EXPECT_EQ(heard("session"), 1);
  EXPECT_EQ(run("exit 3"), 3);
  EXPECT_EQ(heard("session"), 2);
  run_in(log_in_.reactor(), connection().open_ahead(after(std::chrono::seconds(30))));
  connection().close_unused();
  EXPECT_EQ(run("exit 4"), 4);
  EXPECT_EQ(heard("session"), 4);
}

TEST_F(Commands, ACommandThatIsNotBegunIsTold) {
  const auto [failure, text] = error("refuse");
  EXPECT_EQ(failure, Failure::connection_lost);
  EXPECT_TRUE(text.starts_with("the server starts no command: ")) << text;
  EXPECT_EQ(run("exit 0"), 0) << "the next one may be";
}

TEST_F(Commands, AnEndWithoutAnExitCodeIsTold) {
  EXPECT_EQ(error("say x; vanish"),
            std::pair(Failure::connection_lost,
                      std::string("the host closed the command without telling its exit code")));
}

TEST_F(Commands, ALostConnectionIsTold) {
  const auto [failure, text] = error("drop");
  EXPECT_EQ(failure, Failure::connection_lost);
  EXPECT_TRUE(text.starts_with("the connection was lost")) << text;
  EXPECT_FALSE(connection().is_usable());
  const auto next = error("exit 0");
  EXPECT_EQ(next.first, Failure::connection_lost);
  EXPECT_TRUE(next.second.starts_with("the connection was lost")) << next.second;
}

TEST_F(Commands, AnExitCodeCountsThoughTheOutputStaysOpenUntilTheDeadline) {
  EXPECT_EQ(run("say early; status 3; say late; hang", {}, std::chrono::milliseconds(300)), 3);
  EXPECT_EQ(out_, "early\nlate\n");
  EXPECT_EQ(heard("signal TERM"), 0);
}

TEST_F(Commands, ACommandBeyondItsDeadlineIsToldToEndAndHeardOut) {
  const auto limit = std::chrono::milliseconds(50);
  EXPECT_EQ(error_of([&] { run("hang; say late; exit 0", {}, limit); }),
            std::pair(Failure::timed_out, std::string("the command did not end in time")));
  EXPECT_EQ(out_, "late\n");
  EXPECT_EQ(heard("signal TERM"), 1);
  EXPECT_EQ(heard("input " + bash(scripts::kEnd_commands).input), 1);
  EXPECT_EQ(heard("signal KILL"), 0) << "it has ended by then";
  EXPECT_EQ(run("exit 5"), 5) << "and the connection serves the next";
}

TEST_F(Commands, ACommandThatNoScriptCanEndIsKilled) {
  rules_.runs_scripts = false;
  const auto limit = std::chrono::milliseconds(50);
  EXPECT_EQ(error_of([&] { run("hang; exit 0", {}, limit); }).first, Failure::timed_out);
  EXPECT_EQ(run("exit 5"), 5);
  EXPECT_EQ(heard("signal TERM"), 1);
  EXPECT_EQ(heard("signal KILL"), 1);
}

TEST_F(Commands, ExpireEndsTheRunningCommandAndAbandonTheConnection) {
  asio::steady_timer later(log_in_.reactor().context());
  connection();
  later.expires_after(std::chrono::milliseconds(50));
  later.async_wait([&](boost::system::error_code) { connection_->expire(); });
  EXPECT_EQ(error("hang; exit 0").first, Failure::timed_out);
  EXPECT_TRUE(connection().is_usable());
  later.expires_after(std::chrono::milliseconds(50));
  later.async_wait([&](boost::system::error_code) { connection_->abandon(); });
  EXPECT_EQ(error("hang; exit 0").first, Failure::connection_lost);
}

TEST_F(Commands, ExpireWithoutACommandEndsTheConnection) {
  connection().expire();
  EXPECT_EQ(error("exit 0").first, Failure::connection_lost);
}

TEST_F(Commands, TheHostKeyIsNamed) {
  EXPECT_TRUE(connection().host_key().starts_with("ssh-ed25519 SHA256:"))
      << connection().host_key();
}

}  // namespace
}  // namespace dtool::ssh
