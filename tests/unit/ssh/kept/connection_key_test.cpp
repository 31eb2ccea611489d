// SPDX-License-Identifier: MIT
#include "ssh/kept/kept_folder.h"

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

class ConnectionKey : public testing::Test {
 protected:
  ConnectionKey() : home_("HOME", folder_.path().string()), agent_("SSH_AUTH_SOCK", "/run/agent") {
    folder_.write("key", "one");
  }

  std::string key(const std::string& text, const std::string& host = "gpu01") {
    const std::string identity = "IdentityFile " + (folder_.path() / "key").string() + "\n";
    return connection_key(ClientConfig::read(folder_.write("given", identity + text), {}),
                          parse_host(host));
  }

  tests::TemporaryFolder folder_;
  tests::TemporaryVariable home_;
  tests::TemporaryVariable agent_;
};

TEST_F(ConnectionKey, IsTheSameForTheSameWayWhateverItIsCalled) {
  EXPECT_EQ(key("User ann\nPort 2222\n"), key("", "ann@gpu01:2222"));
  EXPECT_EQ(key("Host a\nHostName gpu01\n", "a"), key("Host a\n", "gpu01"));
  EXPECT_EQ(key("ConnectTimeout 7\n"), key(""));
}

TEST_F(ConnectionKey, DiffersWhereTheWayDoes) {
  const std::string usual = key("");
  for (const char* other :
       {"User ann\n", "Port 2222\n", "HostName gpu02\n", "HostKeyAlias x\n", "ProxyJump gate\n",
        "IdentityFile ~/other\n", "IdentitiesOnly yes\n", "IdentityAgent none\n",
        "UserKnownHostsFile ~/known\n", "GlobalKnownHostsFile ~/known\n"}) {
    EXPECT_NE(key(other), usual) << other;
    EXPECT_NE(socket_name(key(other)), socket_name(usual)) << other;
  }
}

TEST_F(ConnectionKey, DiffersWhereAJumpHostIsReachedInAnotherWay) {
  EXPECT_NE(key("Host gate\nUser ann\nHost gpu*\nProxyJump gate\n"),
            key("Host gate\nUser bob\nHost gpu*\nProxyJump gate\n"));
}

TEST_F(ConnectionKey, DiffersAfterAKeyOrItsCertificateWasReplacedOrRemoved) {
  const std::string before = key("");
  folder_.write("key", "two, longer");
  const std::string replaced = key("");
  EXPECT_NE(replaced, before);
  folder_.write("key-cert.pub", "certificate");
  EXPECT_NE(key(""), replaced);
  std::filesystem::remove(folder_.path() / "key-cert.pub");
  EXPECT_EQ(key(""), replaced);
  std::filesystem::remove(folder_.path() / "key");
  EXPECT_NE(key(""), replaced);
}

TEST(KeptFolder, GivesNoLockThatItCannotTake) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  const auto folder = KeptFolder::open(KeptFolder::Make::yes);
  EXPECT_TRUE(folder->lock());
  std::filesystem::remove(folder->path() / "lock");
  std::filesystem::create_symlink("elsewhere", folder->path() / "lock");
  EXPECT_FALSE(folder->lock());
}

}  // namespace
}  // namespace dtool::ssh
