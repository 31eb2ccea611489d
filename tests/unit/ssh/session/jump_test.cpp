// SPDX-License-Identifier: MIT
// Hosts behind a jump host, and how long and how often a server is asked, on loopback.
#include <gtest/gtest.h>

#include <algorithm>

#include "ssh/session/ssh_connection.h"
#include "tests/unit/ssh/login.h"

namespace dtool::ssh {
namespace {

using tests::error_of;
using tests::run_in;

class BehindAJumpHost : public testing::Test {
 protected:
  BehindAJumpHost() {
    rules_.let_in = {log_in_.make_key("key")};
    target_ = std::make_unique<tests::SshServer>(rules_);
  }
  ~BehindAJumpHost() override {
    log_in_.reactor().wind_up();  // what is carried over the jump host's session ends before it
  }

  /// From now on hosts of any name are the target, behind the jump host.
  void begin(const std::string& jump_port = "", const std::string& more_known = "") {
    jump_ = std::make_unique<tests::SshServer>(rules_);
    name_ = "ann@127.0.0.1:" + (jump_port.empty() ? std::to_string(jump_->port()) : jump_port);
    log_in_.folder().write("known_hosts",
                           tests::LogIn::line_of(*target_) +
                               (more_known.empty() ? tests::LogIn::line_of(*jump_) : more_known));
    connector_ = std::make_unique<Connector>(
        log_in_.reactor(), log_in_.options(*target_, "IdentityFile " + log_in_.at("key").string() +
                                                         "\nMatch originalhost gpu*\nProxyJump " +
                                                         name_ + "\nMatch all\n"));
  }

  std::unique_ptr<Session> log_in(const std::string& host) {
    return run_in(log_in_.reactor(), connector_->log_in(parse_host(host)));
  }

  std::pair<Failure, std::string> error(const std::string& host) {
    return error_of([&] { log_in(host); });
  }

  auto times(const std::string& beginning) const {
    const auto heard = jump_->heard();
    return std::ranges::count_if(
        heard, [&](const std::string& each) { return each.starts_with(beginning); });
  }

  tests::LogIn log_in_;
  tests::ServerRules rules_;
  std::unique_ptr<tests::SshServer> target_, jump_;
  std::string name_;
  std::unique_ptr<Connector> connector_;
};

TEST_F(BehindAJumpHost, HostsAreReachedOverOneSessionOfIt) {
  begin();
  EXPECT_TRUE(connector_->jump_sessions({name_}).empty());
  for (const std::string host : {"gpu1", "gpu2"}) {
    SshConnection connection(log_in_.reactor(), log_in(host));
    EXPECT_EQ(run_in(log_in_.reactor(),
                     connection.execute("exit 3", {}, after(std::chrono::seconds(30)))),
              3);
  }
  EXPECT_EQ(times("key"), 1);
  EXPECT_EQ(times("forward 127.0.0.1:" + std::to_string(target_->port())), 2);
  EXPECT_EQ(connector_->jump_sessions({name_}).size(), 1u);
  EXPECT_TRUE(connector_->jump_sessions({"other", name_}).empty());
}

TEST_F(BehindAJumpHost, AHostIsReachedAgainAfterTheJumpHostsSessionWasLost) {
  begin();
  log_in("gpu1");
  Session& jump = *connector_->jump_sessions({name_}).front();
  jump.shut_down();
  jump.cut();
  log_in("gpu1");
  EXPECT_EQ(times("key"), 2);
  EXPECT_EQ(times("forward"), 2);
}

TEST_F(BehindAJumpHost, AForwardingThatIsForbiddenIsTold) {
  rules_.forwards = false;
  begin();
  EXPECT_EQ(error("gpu1"),
            std::pair(Failure::unreachable,
                      "jump host " + name_ + " forbids connections to 127.0.0.1 port " +
                          std::to_string(target_->port()) +
                          "\nhint: its sshd_config has AllowTcpForwarding no, or a PermitOpen "
                          "without this place"));
}

TEST_F(BehindAJumpHost, AnUnknownKeyOfTheJumpHostIsItsOwnFault) {
  begin("", "\n");
  EXPECT_EQ(error("gpu1"),
            std::pair(Failure::host_key_unknown,
                      "jump host " + name_ + ": the host key is not in " +
                          log_in_.at("known_hosts").string() +
                          "\nhint: look at it and accept it with: dtool trust --runs_on " + name_));
}

TEST_F(BehindAJumpHost, AJumpHostThatCannotBeReachedFailsAllBehindIt) {
  begin("1");
  for (const std::string host : {"gpu1", "gpu2"}) {
    const auto [failure, text] = error(host);
    EXPECT_EQ(failure, Failure::unreachable);
    EXPECT_TRUE(text.starts_with("jump host ann@127.0.0.1:1: cannot connect to port 1")) << text;
  }
  EXPECT_TRUE(connector_->jump_sessions({name_}).empty());
}

TEST_F(BehindAJumpHost, HostsThatAreReachedAtOnceWaitForItsOneLogIn) {
  begin();
  int left = 2;
  for (const std::string host : {"gpu1", "gpu2"}) {
    asio::co_spawn(log_in_.reactor().context(), connector_->log_in(parse_host(host)),
                   [&](std::exception_ptr error, std::unique_ptr<Session> session) {
                     EXPECT_FALSE(error);
                     EXPECT_NE(session, nullptr);
                     if (--left == 0) log_in_.reactor().context().stop();
                   });
  }
  log_in_.reactor().context().restart();
  log_in_.reactor().context().run();
  EXPECT_EQ(times("key"), 1);
  EXPECT_EQ(times("forward"), 2);
}

TEST_F(BehindAJumpHost, AJumpHostThatFailsAfterItsSessionWasLostIsTriedOnceMore) {
  begin();
  log_in("gpu1");
  Session& jump = *connector_->jump_sessions({name_}).front();
  const std::string known = log_in_.folder().read("known_hosts");
  log_in_.folder().write("known_hosts", tests::LogIn::line_of(*target_));
  jump.shut_down();
  jump.cut();
  EXPECT_EQ(error("gpu1").first, Failure::host_key_unknown);
  log_in_.folder().write("known_hosts", known);
  EXPECT_EQ(error("gpu1"), std::pair(Failure::none, std::string()));
}

TEST_F(BehindAJumpHost, AJumpHostThatDoesNotAnswerIsNotWaitedForBeyondTheHostsOwnLimit) {
  rules_.answers_forwards = false;
  begin();
  connector_ = std::make_unique<Connector>(
      log_in_.reactor(), log_in_.options(*target_, "IdentityFile " + log_in_.at("key").string() +
                                                       "\nMatch originalhost gpu*\nProxyJump " +
                                                       name_ + "\nConnectTimeout 1\nMatch all\n"));
  EXPECT_EQ(error("gpu1"), std::pair(Failure::connect_timed_out,
                                     "jump host " + name_ +
                                         " does not answer\nhint: --connect_timeout sets how "
                                         "long dtool waits"));
}

/// Hangs up on each client before its greeting.
class RudeServer {
 public:
  RudeServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* place = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), place, size) != 0 || ::listen(listener_.get(), 4) != 0 ||
        ::getsockname(listener_.get(), place, &size) != 0) {
      throw std::runtime_error("no server on loopback");
    }
    port_ = ::ntohs(address.sin_port);
    thread_ = std::thread([this] {
      while (OwnedFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC))) ++clients_;
    });
  }
  RudeServer(const RudeServer&) = delete;
  RudeServer& operator=(const RudeServer&) = delete;
  ~RudeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string port() const { return std::to_string(port_); }
  int clients() const { return clients_; }

 private:
  OwnedFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
  std::atomic<int> clients_ = 0;
  std::thread thread_;
};

TEST(UsualPause, DoublesUpToThreeSeconds) {
  using std::chrono::milliseconds;
  EXPECT_EQ(usual_pause_before(2), milliseconds(100));
  EXPECT_EQ(usual_pause_before(3), milliseconds(200));
  EXPECT_EQ(usual_pause_before(6), milliseconds(1600));
  EXPECT_EQ(usual_pause_before(7), milliseconds(3200));
  EXPECT_EQ(usual_pause_before(8), milliseconds(3200));
}

TEST(Greeting, OfAHostThatNeedsTheSshProgramIsNotAskedFor) {
  const tests::TemporaryFolder folder;
  Reactor reactor;
  ConnectOptions options;
  options.config_file =
      folder.write("config", "HostName 127.0.0.1\nPort 1\nProxyCommand nc %h %p\n");
  Connector connector(reactor, options);
  const std::string text =
      error_of([&] { run_in(reactor, connector.greet(parse_host("gpu1"))); }).second;
  EXPECT_TRUE(text.starts_with("the SSH configuration asks for ")) << text;
}

TEST(Greeting, OfAServerThatHangsUpIsAskedForSomeTimes) {
  const RudeServer server;
  const tests::TemporaryFolder folder;
  Reactor reactor;
  ConnectOptions options;
  options.config_file = folder.write("config", "HostName 127.0.0.1\nPort " + server.port() + "\n");
  options.tries = 2;
  Connector connector(reactor, options);
  const auto began = Clock::now();
  EXPECT_EQ(error_of([&] { run_in(reactor, connector.greet(parse_host("gpu1"))); }),
            std::pair(Failure::unreachable,
                      "127.0.0.1 port " + server.port() +
                          " closed the connection before its greeting, 2 times\nhint: the server "
                          "may be at its MaxStartups, or refuse this address"));
  EXPECT_EQ(server.clients(), 2);
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(50));
  EXPECT_EQ(connector.address_of(parse_host("gpu1")), "127.0.0.1");
}

}  // namespace
}  // namespace dtool::ssh
