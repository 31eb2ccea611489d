// SPDX-License-Identifier: MIT
// Logging in by keys, with a server on loopback.
#include "ssh/session/session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>

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
    } else {
      EXPECT_EQ(
          text,
          "the SSH handshake did not end in time\nhint: --connect_timeout sets how long dtool "
          "waits");
    }
  }
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
}

}  // namespace
}  // namespace dtool::ssh
