// SPDX-License-Identifier: MIT
// Which settings of the SSH configuration dtool leaves to `ssh`, and which it carries itself.
#include "ssh/program/program_choice.h"

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

class ProgramChoiceTest : public testing::Test {
 protected:
  ProgramChoiceTest() : home_("HOME", folder_.path()), agent_("SSH_AUTH_SOCK", "/") {}

  Endpoint way(std::string_view text) {
    return resolve_way(ClientConfig::read(folder_.write("given", text), {}), parse_host("h1"));
  }

  std::string need(std::string_view text) { return way(text).needs_program; }

  tests::TemporaryFolder folder_;
  tests::TemporaryVariable home_;
  tests::TemporaryVariable agent_;
};

TEST_F(ProgramChoiceTest, WhatLibsshCarriesNeedsNoProgram) {
  EXPECT_EQ(need("Ciphers aes128-ctr,one-that-nobody-knows\nMACs hmac-sha2-256\n"), "");
  EXPECT_EQ(need("KexAlgorithms curve25519-sha256\nPubkeyAcceptedAlgorithms ssh-ed25519\n"), "");
  EXPECT_EQ(need("RequiredRSASize 2048\nPreferredAuthentications publickey,password\n"), "");
  EXPECT_EQ(way("AddressFamily inet6\n").address_family, AddressFamily::inet6);
}

TEST_F(ProgramChoiceTest, WhatLibsshDoesNotCarryGoesToTheProgram) {
  EXPECT_EQ(need("User \"o'brien\"\n"), "User o'brien");
  EXPECT_EQ(need("User LAB\\jane\n"), "User LAB\\jane");
  EXPECT_EQ(need("Ciphers +aes128-cbc\n"), "ciphers +aes128-cbc");
  EXPECT_EQ(need("MACs -hmac-sha1*\n"), "macs -hmac-sha1*");
  EXPECT_EQ(need("KexAlgorithms one-that-nobody-knows\n"), "kexalgorithms one-that-nobody-knows");
  EXPECT_EQ(need("BindAddress 10.0.0.1\n"), "BindAddress");
  EXPECT_EQ(need("SetEnv A=b\n"), "SetEnv");
  EXPECT_EQ(need("PubkeyAuthentication no\n"), "PubkeyAuthentication no");
  EXPECT_EQ(need("PreferredAuthentications password\n"), "PreferredAuthentications");
  EXPECT_EQ(need("Host h1\nProxyJump gate\nHost gate\nUser \"o'brien\"\n"),
            "User o'brien for jump host gate");
}

}  // namespace
}  // namespace dtool::ssh
