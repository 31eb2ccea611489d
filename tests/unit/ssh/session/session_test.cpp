// SPDX-License-Identifier: MIT
// Logging in by keys, with a server on loopback.
#include "ssh/session/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "tests/unit/ssh/login.h"

namespace dtool::ssh {
namespace {

using tests::error_of;

class LogInByKey : public testing::Test {
 protected:
  using Texts = std::vector<std::string>;

  /// Logs in with these lines of a configuration; returns the error, if any.
  std::pair<Failure, std::string> log_in(const std::string& more) {
    server_ = std::make_unique<tests::SshServer>(rules_);
    session_ = nullptr;
    return error_of([&] { session_ = log_in_.log_in(*server_, more); });
  }

  std::string file(const std::string& name) const { return log_in_.at(name).string(); }
  std::string identity(const std::string& name) const {
    return "IdentityFile " + file(name) + "\n";
  }

  tests::LogIn log_in_;
  tests::ServerRules rules_;
  std::unique_ptr<tests::SshServer> server_;
  std::unique_ptr<Session> session_;
  static inline const std::pair<Failure, std::string> kGood{Failure::none, ""};
  static constexpr const char* kHint =
      "\nhint: is this the right user, and is your public key in the host's "
      "~/.ssh/authorized_keys?";
};

TEST_F(LogInByKey, KeysAreTriedInOrderUntilOneIsTaken) {
  const std::string a = log_in_.make_key("a");
  const std::string b = log_in_.make_key("b");
  log_in_.make_key("c");
  rules_.let_in = {b};
  EXPECT_EQ(log_in(identity("a") + identity("none") + identity("b") + identity("c")), kGood);
  EXPECT_EQ(server_->heard(), (Texts{"key " + a, "key " + b}));
  EXPECT_TRUE(session_->is_connected());
  EXPECT_EQ(session_->endpoint().user, "ann");
}

TEST_F(LogInByKey, WhatWasTriedIsTold) {
  log_in_.make_key("a");
  log_in_.folder().write("noise");
  EXPECT_EQ(
      log_in(identity("a") + identity("none") + identity("noise")),
      std::pair(Failure::not_authenticated, "user ann was not let in; tried " + file("a") + ", " +
                                                file("none") + " (not there), " + file("noise") +
                                                " (not a private key that can be read)" + kHint));
}

TEST_F(LogInByKey, WithoutAKeyTheUsualFilesAreTried) {
  const tests::TemporaryVariable home("HOME", log_in_.folder().path().string());
  EXPECT_EQ(log_in(""), std::pair(Failure::not_authenticated,
                                  std::string("user ann was not let in; tried no key, because none "
                                              "was found") +
                                      kHint));
  std::filesystem::create_directory(log_in_.at(".ssh"));
  log_in_.folder().write(".ssh/id_rsa", "no key");
  rules_.let_in = {log_in_.make_key(".ssh/id_ed25519")};
  EXPECT_EQ(log_in(""), kGood);
  rules_.let_in = {};
  EXPECT_EQ(log_in("").second, "user ann was not let in; tried " + file(".ssh/id_ed25519") + ", " +
                                   file(".ssh/id_rsa") + " (not a private key that can be read)" +
                                   kHint);
}

TEST_F(LogInByKey, ASecondFactorIsToldFromARefusal) {
  rules_.half_in = {log_in_.make_key("a")};
  log_in_.make_key("b");
  EXPECT_EQ(log_in(identity("a") + identity("b")),
            std::pair(Failure::not_authenticated,
                      std::string("user ann was not let in: the server took a key, and asks for a "
                                  "second factor")));
}

TEST_F(LogInByKey, AServerThatHangsUpAfterSomeKeysIsTold) {
  log_in_.make_key("a");
  log_in_.make_key("b");
  log_in_.make_key("c");
  rules_.most_refusals = 2;
  const auto [failure, text] = log_in(identity("a") + identity("b") + identity("c"));
  EXPECT_EQ(failure, Failure::not_authenticated);
  EXPECT_TRUE(text.starts_with("user ann was not let in: the server ended the log-in: ")) << text;
  EXPECT_TRUE(text.ends_with("; tried " + file("a") + ", " + file("b")) ||
              text.ends_with("; tried " + file("a") + ", " + file("b") + ", " + file("c")))
      << text;
}

TEST_F(LogInByKey, AnAgentThatIsGoneIsTriedLastWhereFilesAreNamedAndFirstWhereNoneAre) {
  const tests::TemporaryVariable home("HOME", log_in_.folder().path().string());
  const std::string agent = "IdentityAgent " + file("agent") + "\n";
  const std::string gone = "the agent (No such file or directory)";
  log_in_.make_key("a");
  EXPECT_EQ(log_in(agent + identity("a")).second,
            "user ann was not let in; tried " + file("a") + ", " + gone + kHint);
  std::filesystem::create_directory(log_in_.at(".ssh"));
  log_in_.make_key(".ssh/id_ed25519");
  const std::string usual = file(".ssh/id_ed25519");
  EXPECT_EQ(log_in(agent).second, "user ann was not let in; tried " + gone + ", " + usual + kHint);
  EXPECT_EQ(log_in(agent + "IdentitiesOnly yes\n").second,
            "user ann was not let in; tried " + usual + ", " + gone + kHint);
  EXPECT_EQ(log_in(agent + "CertificateFile " + file("cert") + "\n").second,
            "user ann was not let in; tried " + file("cert") + " (not there), " + usual + ", " +
                file(".ssh/id_ecdsa") + " (not there), " + file(".ssh/id_rsa") + " (not there), " +
                gone + kHint);
}

TEST_F(LogInByKey, AServerThatStopsInTheHandshakeIsNotWaitedForLong) {
  int sockets[2];
  for (const bool hangs_up : {false, true}) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    OwnedFd server(sockets[1]);
    KnownHosts known_hosts;
    Endpoint endpoint;
    endpoint.key_name = "gpu1";
    Session session(log_in_.reactor(), endpoint, OwnedFd(sockets[0]), known_hosts);
    ASSERT_EQ(::send(server.get(), "SSH-2.0-x\r\n", 11, 0), 11);
    if (hangs_up) server.reset();
    const auto [failure, text] = error_of([&] {
      tests::run_in(log_in_.reactor(),
                    session.exchange_keys(after(std::chrono::milliseconds(100))));
    });
    EXPECT_EQ(failure, hangs_up ? Failure::unreachable : Failure::connect_timed_out) << text;
    if (hangs_up) {
      EXPECT_TRUE(text.starts_with("the SSH handshake failed: ")) << text;
      EXPECT_FALSE(session.is_connected());
    } else {
      EXPECT_EQ(
          text,
          "the SSH handshake did not end in time\nhint: --connect_timeout sets how long dtool "
          "waits");
    }
  }
}

TEST_F(LogInByKey, AHandshakeThatIsGivenUpSaysSo) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const OwnedFd server(sockets[1]);
  KnownHosts known_hosts;
  Endpoint endpoint;
  endpoint.key_name = "gpu1";
  Reactor reactor;
  Session session(reactor, endpoint, OwnedFd(sockets[0]), known_hosts);
  asio::post(reactor.context(), [&] { reactor.abandon(); });
  const auto [failure, text] = error_of(
      [&] { tests::run_in(reactor, session.exchange_keys(after(std::chrono::seconds(30)))); });
  EXPECT_EQ(failure, Failure::connection_lost);
  EXPECT_EQ(text, "left on interrupt; its work may go on there");
}

/// Whether that number is of an open file.
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

TEST(SessionDescriptors, AreClosedWithItAndNoOtherFileIs) {
  for (const bool libssh_closes : {false, true}) {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    const OwnedFd server(sockets[1]);
    KnownHosts known_hosts;
    Reactor reactor;
    auto session = std::make_unique<Session>(reactor, Endpoint{}, OwnedFd(sockets[0]), known_hosts);
    const auto [socket, copy] = session->fds();
    EXPECT_NE(socket, copy);
    if (libssh_closes) {  // as it does on some errors; the number then is another file's
      ::close(copy);
      ASSERT_EQ(::fcntl(server.get(), F_DUPFD_CLOEXEC, copy), copy);
    }
    session.reset();
    EXPECT_FALSE(is_open(socket));
    EXPECT_EQ(is_open(copy), libssh_closes);
    if (libssh_closes) ::close(copy);
  }
}

TEST_F(LogInByKey, LibsshKnowsTheHostAsTheConfigurationHasIt) {
  std::filesystem::create_directories(log_in_.at("100%/.ssh"));
  log_in_.folder().write("100%/.ssh/config", "Ciphers aes128-ctr\n");
  const tests::TemporaryVariable home("HOME", file("100%"));
  rules_.let_in = {log_in_.make_key("a")};
  ASSERT_EQ(log_in(identity("a")), kGood);
  const auto told = [this](ssh_options_e option) {
    char* value = nullptr;
    if (::ssh_options_get(session_->handle(), option, &value) != SSH_OK) return std::string();
    return std::string(StringHandle(value).get());
  };
  EXPECT_EQ(told(SSH_OPTIONS_HOST), "127.0.0.1");
  EXPECT_EQ(told(SSH_OPTIONS_USER), "ann");
  EXPECT_EQ(told(SSH_OPTIONS_KNOWNHOSTS), "/dev/null");
  EXPECT_EQ(told(SSH_OPTIONS_GLOBAL_KNOWNHOSTS), "/dev/null");
  EXPECT_TRUE(told(SSH_OPTIONS_IDENTITY).starts_with(file("100%/.ssh") + "/"))
      << told(SSH_OPTIONS_IDENTITY);
  unsigned int port = 0;
  EXPECT_EQ(::ssh_options_get_port(session_->handle(), &port), SSH_OK);
  EXPECT_EQ(port, server_->port());
  EXPECT_STRNE(::ssh_get_cipher_out(session_->handle()), "aes128-ctr")
      << "libssh reads no configuration of its own";
}

/// A session that someone waits for, without an end of patience.
class WaitedFor : public LogInByKey {
 protected:
  void SetUp() override {
    rules_.let_in = {log_in_.make_key("a")};
    ASSERT_EQ(log_in(identity("a")), kGood);
  }

  /// What that wait ends with, once `act` has been called meanwhile.
  Waiter::Outcome outcome(std::function<void()> act) {
    asio::steady_timer later(log_in_.reactor().context(), std::chrono::milliseconds(1));
    later.async_wait([act](boost::system::error_code) { act(); });
    return tests::run_in(log_in_.reactor(), session_->wait(after(std::chrono::seconds(30))));
  }

  /// Has the server send a packet, and libssh take it in.
  void take_in_packet() const {
    const std::uint64_t before = session_->packets();
    for (int left = 200; left > 0 && session_->packets() == before; --left) {
      if (left % 20 == 0) ::ssh_send_keepalive(session_->handle());
      pollfd state{session_->fds().front(), POLLIN, 0};
      ::poll(&state, 1, 100);
      ::ssh_execute_message_callbacks(session_->handle());
    }
    EXPECT_GT(session_->packets(), before);
  }
};

TEST_F(WaitedFor, APacketThatIsHeardMeanwhileEndsTheWait) {
  EXPECT_GT(session_->packets(), 0u);
  EXPECT_EQ(outcome([this] {
              take_in_packet();
              session_->hear();
            }),
            Waiter::Outcome::ready);
}

TEST_F(WaitedFor, APacketThatAnotherCallTakesInEndsTheWait) {
  std::function<int()> call = [this] {
    take_in_packet();
    return SSH_OK;
  };
  EXPECT_EQ(outcome([&] {
              asio::co_spawn(log_in_.reactor().context(),
                             session_->repeat(call, SSH_AGAIN, after(std::chrono::seconds(20))),
                             asio::detached);
            }),
            Waiter::Outcome::ready);
}

TEST_F(WaitedFor, ItsCutEndsTheWaitAndEachCall) {
  EXPECT_EQ(outcome([this] { session_->cut(); }), Waiter::Outcome::ready);
  const auto call = [] { return SSH_AGAIN; };
  EXPECT_EQ(error_of([&] {
              tests::run_in(
                  log_in_.reactor(),
                  session_->repeat(call, SSH_AGAIN, after(std::chrono::milliseconds(50))));
            }).first,
            Failure::connection_lost);
}

TEST_F(WaitedFor, ALogInThatIsGivenUpSaysSo) {
  IdentityCache identities;
  log_in_.reactor().abandon();
  const auto [failure, text] = error_of([&] {
    tests::run_in(log_in_.reactor(),
                  session_->authenticate(identities, after(std::chrono::seconds(20))));
  });
  EXPECT_EQ(failure, Failure::connection_lost);
}

TEST(EndedLogIn, TellsTheServersReasonWithoutLibsshsWordsBeforeIt) {
  const std::string many = "Too many authentication failures";
  const HostError error =
      ended_log_in("ann", "Received SSH_MSG_DISCONNECT: 2:" + many, "key_a, key_b");
  EXPECT_EQ(error.failure(), Failure::not_authenticated);
  EXPECT_EQ(error.what(), "user ann was not let in: the server ended the log-in: " + many +
                              "; tried key_a, key_b");
  EXPECT_TRUE(error.hint().starts_with("the server allows only a few keys: ")) << error.hint();
  const HostError other = ended_log_in("ann", "Socket error: disconnected", "key_a");
  EXPECT_STREQ(other.what(),
               "user ann was not let in: the server ended the log-in: Socket error: disconnected; "
               "tried key_a");
  EXPECT_EQ(other.hint(), "");
}

class ServerSilenceTest : public testing::Test {
 protected:
  using Next = ServerSilence::Next;
  using seconds = std::chrono::seconds;
  using milliseconds = std::chrono::milliseconds;

  /// The end of a wait that begins at that time and lasts as long as it may; the next begins there.
  Deadline waited_from(Deadline begin, std::uint64_t packets) {
    const Deadline end = silence_.wait_begins(packets, begin);
    silence_.wait_ended(end);
    return end;
  }

  ServerSilence silence_;
  const Deadline start_ = Clock::now();
};

TEST_F(ServerSilenceTest, IsBrokenByAQuestionAfterAWhileAndAnEndInTheSameTimeAgain) {
  EXPECT_EQ(waited_from(start_, 7), start_ + seconds(15));
  EXPECT_EQ(silence_.next(7), Next::ask);
  EXPECT_EQ(silence_.next(7), Next::wait) << "another waiter need not ask once more";
  EXPECT_EQ(waited_from(start_ + seconds(15), 7), start_ + seconds(30));
  EXPECT_EQ(silence_.next(7), Next::give_up);
}

TEST_F(ServerSilenceTest, EndsWithAPacket) {
  waited_from(start_, 7);
  EXPECT_EQ(silence_.next(8), Next::wait) << "it came just now";
  EXPECT_EQ(silence_.next(7), Next::ask);
  EXPECT_EQ(waited_from(start_ + seconds(15), 8), start_ + seconds(30));
  EXPECT_EQ(silence_.next(8), Next::ask) << "this silence is a new one";
}

TEST_F(ServerSilenceTest, IsNotTheServersWhereNobodyWasListening) {
  waited_from(start_, 7);
  EXPECT_EQ(silence_.next(7), Next::ask);
  const Deadline late = start_ + seconds(16) + milliseconds(1);
  EXPECT_EQ(waited_from(late, 7), late + seconds(15));
  EXPECT_EQ(silence_.next(7), Next::ask);
  EXPECT_EQ(waited_from(late + seconds(16), 7), late + seconds(30)) << "a second is not late";
  EXPECT_EQ(silence_.next(7), Next::give_up);
}

TEST_F(LogInByKey, ASessionThatIsCutIsLost) {
  rules_.let_in = {log_in_.make_key("a")};
  ASSERT_EQ(log_in(identity("a")), kGood);
  session_->hear();
  EXPECT_TRUE(session_->is_connected());
  EXPECT_FALSE(session_->has_unsent_bytes());
  session_->cut();
  EXPECT_FALSE(session_->is_connected());
}

TEST_F(LogInByKey, AFarewellIsHeardWhileNothingIsAsked) {
  rules_.let_in = {log_in_.make_key("a")};
  ASSERT_EQ(log_in(identity("a")), kGood);
  server_.reset();
  tests::run_in(log_in_.reactor(), session_->wait(after(std::chrono::seconds(30))));
  session_->hear();
  EXPECT_FALSE(session_->is_connected());
}

TEST_F(LogInByKey, ASettingOfTheEncryptionIsUsed) {
  rules_.let_in = {log_in_.make_key("a")};
  EXPECT_EQ(log_in(identity("a") + "Ciphers aes256-ctr\nMACs hmac-sha2-256\n"
                                   "KexAlgorithms ecdh-sha2-nistp256\n"),
            kGood);
  EXPECT_STREQ(::ssh_get_cipher_in(session_->handle()), "aes256-ctr");
  EXPECT_STREQ(::ssh_get_cipher_out(session_->handle()), "aes256-ctr");
  EXPECT_STREQ(::ssh_get_hmac_in(session_->handle()), "hmac-sha2-256");
  EXPECT_STREQ(::ssh_get_hmac_out(session_->handle()), "hmac-sha2-256");
  EXPECT_STREQ(::ssh_get_kex_algo(session_->handle()), "ecdh-sha2-nistp256");
}

TEST(RefusedByLibssh, IsASettingThatItDoesNotTake) {
  const auto refused = [](const std::string& keyword, const std::string& value) {
    Endpoint endpoint;
    endpoint.encryption = {{keyword, value}};
    const std::string text = refused_by_libssh(endpoint);
    EXPECT_TRUE(text.empty() || text == keyword + " " + value) << text;
    return !text.empty();
  };
  const std::vector<std::pair<std::string, std::string>> taken = {
      {"ciphers", "aes256-ctr,unknown"},
      {"macs", "hmac-sha2-256"},
      {"kexalgorithms", "curve25519-sha256"},
      {"pubkeyacceptedalgorithms", "ssh-ed25519"},
      {"requiredrsasize", "3072"}};
  for (const auto& [keyword, value] : taken) EXPECT_FALSE(refused(keyword, value)) << keyword;
  for (const std::string keyword : {"ciphers", "macs", "kexalgorithms", "pubkeyacceptedalgorithms"})
    EXPECT_TRUE(refused(keyword, "unknown")) << keyword;
  for (const std::string value : {"+aes256-ctr", "-aes256-ctr", "^aes256-ctr", "aes256-c*",
                                  "aes256-ct?", "aes256-ctr,!aes128-ctr"})
    EXPECT_TRUE(refused("ciphers", value)) << value;
  EXPECT_TRUE(refused("requiredrsasize", "many"));
  EXPECT_TRUE(refused("requiredrsasize", "12"));
  EXPECT_TRUE(refused("kexalgorithms", "aes256-ctr")) << "a cipher is no key exchange";
  EXPECT_TRUE(refused("pubkeyacceptedalgorithms", "curve25519-sha256"));
}

TEST(RefusedByLibssh, MayBeAUser) {
  Endpoint endpoint;
  EXPECT_EQ(refused_by_libssh(endpoint), "");
  endpoint.user = "ann";
  EXPECT_EQ(refused_by_libssh(endpoint), "");
  endpoint.user = "o'brien";
  EXPECT_EQ(refused_by_libssh(endpoint), "User o'brien");
}

TEST(RefusedByLibssh, EndsTheConnectionWhereItIsMetLate) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const OwnedFd server(sockets[1]);
  Reactor reactor;
  KnownHosts known_hosts;
  Endpoint endpoint;
  endpoint.user = "o'brien";
  const auto [failure, text] =
      error_of([&] { const Session session(reactor, endpoint, OwnedFd(sockets[0]), known_hosts); });
  EXPECT_EQ(failure, Failure::unreachable);
  EXPECT_TRUE(text.starts_with("libssh refused o'brien: ")) << text;
}

}  // namespace
}  // namespace dtool::ssh
