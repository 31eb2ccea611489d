// SPDX-License-Identifier: MIT
// How a host is reached, from SSH client configuration.
#include "ssh/config/client_config.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using Jumps = std::vector<std::string>;
using Paths = std::vector<std::filesystem::path>;

std::string this_user() {
  return getpwuid(getuid())->pw_name;
}

class ClientConfigTest : public testing::Test {
 protected:
  ClientConfigTest()
      : home_("HOME", folder_.path().string()), agent_("SSH_AUTH_SOCK", "/run/agent") {}

  // As with ssh -F, so that this machine's own configuration has no say.
  ClientConfig config(std::string_view text, ClientConfig::Overrides overrides = {}) {
    return ClientConfig::read(folder_.write("given", text), std::move(overrides));
  }

  Endpoint resolve(std::string_view text, const std::string& host = "gpu01",
                   ClientConfig::Overrides overrides = {}) {
    return config(text, std::move(overrides)).resolve(parse_host(host));
  }

  std::filesystem::path home(const std::string& name) { return folder_.path() / name; }

  tests::TemporaryFolder folder_;
  tests::TemporaryVariable home_;
  tests::TemporaryVariable agent_;
};

TEST_F(ClientConfigTest, ANameThatNoBlockSpeaksOfIsTakenAsItStands) {
  const Endpoint endpoint = resolve("Host other\nUser bob\n");
  EXPECT_EQ(endpoint.address, "gpu01");
  EXPECT_EQ(endpoint.key_name, "gpu01");
  EXPECT_EQ(endpoint.user, this_user());
  EXPECT_EQ(endpoint.port, 22);
  EXPECT_EQ(endpoint.identity_files, Paths{});
  EXPECT_FALSE(endpoint.only_named_identities);
  EXPECT_EQ(endpoint.known_hosts, home(".ssh/known_hosts"));
  EXPECT_EQ(endpoint.known_hosts_files,
            (Paths{home(".ssh/known_hosts"), home(".ssh/known_hosts2"), "/etc/ssh/ssh_known_hosts",
                   "/etc/ssh/ssh_known_hosts2"}));
  EXPECT_EQ(endpoint.key_port, 22);
  EXPECT_EQ(endpoint.jumps, Jumps{});
  EXPECT_EQ(endpoint.proxy_command, std::nullopt);
  EXPECT_EQ(endpoint.identity_agent, "/run/agent");
  EXPECT_EQ(endpoint.connect_timeout, std::nullopt);
}

TEST_F(ClientConfigTest, EverySettingIsTaken) {
  const Endpoint endpoint = resolve(
      "Host gpu01\n"
      "  HostName 10.0.0.1\n  HostKeyAlias red\n  User ann\n  Port 2222\n"
      "  IdentityFile ~/.ssh/one\n  IdentityFile /keys/two\n  IdentitiesOnly yes\n"
      "  UserKnownHostsFile ~/known /dev/null\n  GlobalKnownHostsFile /etc/known /etc/more\n"
      "  ProxyJump bob@gate1,gate2:2200\n  IdentityAgent ~/agent.sock\n  ConnectTimeout 1m30s\n");
  EXPECT_EQ(endpoint.address, "10.0.0.1");
  EXPECT_EQ(endpoint.key_name, "red");
  EXPECT_EQ(endpoint.user, "ann");
  EXPECT_EQ(endpoint.port, 2222);
  EXPECT_EQ(endpoint.identity_files, (Paths{home(".ssh/one"), "/keys/two"}));
  EXPECT_TRUE(endpoint.only_named_identities);
  EXPECT_EQ(endpoint.known_hosts, home("known"));
  EXPECT_EQ(endpoint.known_hosts_files,
            (Paths{home("known"), "/dev/null", "/etc/known", "/etc/more"}));
  EXPECT_EQ(endpoint.key_port, 22) << "an alias stands for the port, too";
  EXPECT_EQ(endpoint.jumps, (Jumps{"bob@gate1", "gate2:2200"}));
  EXPECT_EQ(endpoint.identity_agent, home("agent.sock"));
  EXPECT_EQ(endpoint.connect_timeout, std::chrono::seconds(90));
}

TEST_F(ClientConfigTest, TheFirstValueWins) {
  EXPECT_EQ(resolve("Host gpu*\nUser ann\nUser ben\nHost *\nUser cat\nPort 23\n").user, "ann");
  EXPECT_EQ(resolve("User top\nHost *\nUser cat\n").user, "top");
  EXPECT_EQ(resolve("Host *\nUser cat\nPort 23\n").port, 23);
}

TEST_F(ClientConfigTest, IdentityFilesOfAllBlocksAddUp) {
  EXPECT_EQ(resolve("Host gpu01\nIdentityFile /a\nHost *\nIdentityFile /b\nIdentityFile none\n")
                .identity_files,
            (Paths{"/a", "/b"}));
}

TEST_F(ClientConfigTest, HostPatternsMayDenyAndHoldWildcards) {
  const std::string text = "Host gpu* !gpu13 login?\nUser ann\nHost *\nUser other\n";
  EXPECT_EQ(resolve(text, "gpu01").user, "ann");
  EXPECT_EQ(resolve(text, "gpu").user, "ann");
  EXPECT_EQ(resolve(text, "gpu13").user, "other");
  EXPECT_EQ(resolve(text, "login1").user, "ann");
  EXPECT_EQ(resolve(text, "login").user, "other");
  EXPECT_EQ(resolve(text, "login12").user, "other");
  EXPECT_EQ(resolve("Host !gpu01\nUser ann\n", "gpu02").user, this_user())
      << "a denial alone takes nobody in";
  EXPECT_EQ(resolve("Host a*b*c\nUser ann\n", "aXbYbZc").user, "ann");
}

TEST_F(ClientConfigTest, HostLooksAtTheNameGivenAndMatchHostAtTheAddress) {
  const std::string text = "Host gpu01\nHostName %h.lab.org\n";
  EXPECT_EQ(resolve(text).address, "gpu01.lab.org");
  EXPECT_EQ(resolve(text + "Host *.lab.org\nUser ann\n").user, this_user());
  EXPECT_EQ(resolve(text + "Match host *.lab.org\nUser ann\n").user, "ann");
  EXPECT_EQ(resolve(text + "Match originalhost gpu01\nUser ann\n").user, "ann");
  EXPECT_EQ(resolve(text + "Match host gpu01\nUser ann\n").user, this_user());
}

TEST_F(ClientConfigTest, MatchTakesSeveralCriteriaThatMustAllHold) {
  EXPECT_EQ(resolve("Match all\nPort 23\n").port, 23);
  EXPECT_EQ(resolve("Match user ann,bob\nPort 23\n", "bob@gpu01").port, 23);
  EXPECT_EQ(resolve("Match user ann\nPort 23\n", "bob@gpu01").port, 22);
  EXPECT_EQ(resolve("Match !user ann\nPort 23\n", "bob@gpu01").port, 23);
  EXPECT_EQ(resolve("Match host gpu* user bob\nPort 23\n", "bob@gpu01").port, 23);
  EXPECT_EQ(resolve("Match host=gpu* user=ann\nPort 23\n", "bob@gpu01").port, 22);
  EXPECT_EQ(resolve("Match host gpu*,!gpu01\nPort 23\n").port, 22);
  EXPECT_EQ(resolve("Match localuser " + this_user() + "\nPort 23\n").port, 23);
  EXPECT_EQ(resolve("User ann\nMatch user ann\nPort 23\n").port, 23);
}

TEST_F(ClientConfigTest, MatchOnWhatDtoolDoesNotAskNeverHolds) {
  for (const std::string criterion :
       {"exec true", "exec \"test -e x\"", "!exec false", "final", "canonical all", "final all",
        "localnetwork 10.0.0.0/8", "tagged x", "exec=true"}) {
    EXPECT_EQ(resolve("Match " + criterion + "\nPort 23\nMatch all\nPort 24\n").port, 24)
        << criterion;
  }
}

TEST_F(ClientConfigTest, WhatTheHostSaysItselfWinsOverEverything) {
  const Endpoint endpoint =
      resolve("User ann\nPort 23\n", "bob@gpu01:24", {{"User", "cat"}, {"Port", "25"}});
  EXPECT_EQ(endpoint.user, "bob");
  EXPECT_EQ(endpoint.port, 24);
}

TEST_F(ClientConfigTest, SettingsByHandWinOverFiles) {
  const Endpoint endpoint =
      resolve("User ann\nPort 23\nIdentityFile /file\n", "gpu01",
              {{"user", "cat"}, {"PORT", "25"}, {"IdentityFile", "/by hand"}});
  EXPECT_EQ(endpoint.user, "cat");
  EXPECT_EQ(endpoint.port, 25);
  EXPECT_EQ(endpoint.identity_files, (Paths{"/by hand", "/file"}));
}

TEST_F(ClientConfigTest, ASettingByHandThatCannotBeIsNamed) {
  EXPECT_EQ(tests::fault_of([&] {
              config("", {{"Port", "abc"}});
            }),
            "SSH setting Port=abc: Port 'abc' is not a number from 1 to 65535");
}

TEST_F(ClientConfigTest, TokensVariablesAndTildesAreExpanded) {
  const tests::TemporaryVariable variable("DTOOL_TEST_KEYS", "/keys");
  const Endpoint endpoint = resolve(
      "HostName %h.lab\nIdentityFile ~/%h-%n-%p-%r-%u-%%-%x\nIdentityFile %d/id\n"
      "IdentityFile ${DTOOL_TEST_KEYS}/a\nIdentityFile ${DTOOL_TEST_NONE}/b\nIdentityAgent "
      "/run/%i/s\n",
      "ann@gpu01:24");
  const std::string tokens = "gpu01.lab-gpu01-24-ann-" + this_user() + "-%-%x";
  EXPECT_EQ(endpoint.identity_files,
            (Paths{home(tokens), home("id"), "/keys/a", "${DTOOL_TEST_NONE}/b"}));
  EXPECT_EQ(endpoint.identity_agent, "/run/" + std::to_string(getuid()) + "/s");
}

TEST_F(ClientConfigTest, TheAgentMayBeNoneOrNamedByAVariable) {
  const tests::TemporaryVariable variable("DTOOL_TEST_AGENT", "/other");
  EXPECT_EQ(resolve("IdentityAgent none\n").identity_agent, "");
  EXPECT_EQ(resolve("IdentityAgent SSH_AUTH_SOCK\n").identity_agent, "/run/agent");
  EXPECT_EQ(resolve("IdentityAgent $DTOOL_TEST_AGENT\n").identity_agent, "/other");
}

TEST_F(ClientConfigTest, AProxyCommandIsKeptAndShutsOutALaterJump) {
  const Endpoint command = resolve("ProxyCommand nc %h %p\nProxyJump gate\n");
  EXPECT_EQ(command.proxy_command, "nc %h %p");
  EXPECT_EQ(command.jumps, Jumps{});
  const Endpoint jump = resolve("ProxyJump gate\nProxyCommand nc %h %p\n");
  EXPECT_EQ(jump.proxy_command, std::nullopt);
  EXPECT_EQ(jump.jumps, Jumps{"gate"});
  const Endpoint none = resolve("ProxyJump none\nProxyCommand nc %h %p\nProxyJump gate\n");
  EXPECT_EQ(none.proxy_command, std::nullopt);
  EXPECT_EQ(none.jumps, Jumps{});
}

TEST_F(ClientConfigTest, JumpsAreReadInEachOfTheirForms) {
  EXPECT_EQ(resolve("ProxyJump \"ssh://ann@gate:2200/, [fe80::1]:22\"\n").jumps,
            (Jumps{"ann@gate:2200", "[fe80::1]:22"}));
  EXPECT_EQ(resolve("ProxyJump %r@gate\n", "ann@gpu01").jumps, Jumps{"ann@gate"});
}

TEST_F(ClientConfigTest, AJumpHostForAllHostsIsNotReachedThroughItself) {
  const std::string text = "Host *\nProxyJump gate\n";
  EXPECT_EQ(resolve(text, "gpu01").jumps, Jumps{"gate"});
  EXPECT_EQ(resolve(text, "gate").jumps, Jumps{});
  const std::string chain = "Host *\nProxyJump a,b\n";
  EXPECT_EQ(resolve(chain, "gpu01").jumps, (Jumps{"a", "b"}));
  EXPECT_EQ(resolve(chain, "b").jumps, Jumps{"a"});
}

TEST_F(ClientConfigTest, TheFirstJumpHostsOwnJumpsComeBefore) {
  const std::string text = "Host gpu*\nProxyJump b\nHost b\nProxyJump a\n";
  EXPECT_EQ(resolve(text, "gpu01").jumps, (Jumps{"a", "b"}));
}

TEST_F(ClientConfigTest, JumpHostsThatNameEachOtherComeToAnEnd) {
  EXPECT_LE(resolve("Host a\nProxyJump b\nHost b\nProxyJump a\n", "a").jumps.size(), 10u);
}

TEST_F(ClientConfigTest, SettingsByHandForTheDestinationDoNotReachItsJumpHosts) {
  const ClientConfig read = config("Host gate\nUser gatekeeper\n", {{"Port", "2222"},
                                                                    {"User", "ann"},
                                                                    {"ProxyJump", "gate"},
                                                                    {"HostName", "10.0.0.1"},
                                                                    {"IdentityFile", "/key"}});
  const Endpoint gate = read.resolve_jump(parse_host("gate"));
  EXPECT_EQ(gate.address, "gate");
  EXPECT_EQ(gate.user, "gatekeeper");
  EXPECT_EQ(gate.port, 22);
  EXPECT_EQ(gate.jumps, Jumps{});
  EXPECT_EQ(gate.identity_files, Paths{"/key"});
  EXPECT_EQ(read.resolve(parse_host("gpu01")).jumps, Jumps{"gate"});
}

TEST_F(ClientConfigTest, AConnectTimeoutOfNoneOrZeroSaysNothing) {
  EXPECT_EQ(resolve("ConnectTimeout none\n").connect_timeout, std::nullopt);
  EXPECT_EQ(resolve("ConnectTimeout 0\n").connect_timeout, std::nullopt);
}

TEST_F(ClientConfigTest, KnownHostsOfNoneAreEmpty) {
  EXPECT_EQ(resolve("UserKnownHostsFile none\n").known_hosts, "/dev/null");
}

TEST_F(ClientConfigTest, AFileThatIsGivenMustBeThereAndIsReadAlone) {
  folder_.write(".ssh/config", "Port 23\n");
  EXPECT_EQ(resolve("").port, 22);
  EXPECT_EQ(tests::fault_of([&] { ClientConfig::read(home("none_such"), {}); }),
            "SSH configuration " + home("none_such").string() +
                ": cannot be read: No such file or directory");
  EXPECT_EQ(ClientConfig::read("none", {}).resolve(parse_host("gpu01")).port, 22);
  folder_.write("other", "Port 24\n");
  EXPECT_EQ(ClientConfig::read("~/other", {}).resolve(parse_host("gpu01")).port, 24);
}

TEST_F(ClientConfigTest, TheUsersOwnFileIsReadBelowHomeAndMayBeMissing) {
  EXPECT_NO_THROW(ClientConfig::read(std::nullopt, {}));
  folder_.write(".ssh/config", "Include extra/*\nHost dtool-test-host\nPort 2301\n");
  folder_.write(".ssh/extra/one", "Host dtool-test-host\nUser ann\n");
  const Endpoint endpoint =
      ClientConfig::read(std::nullopt, {}).resolve(parse_host("dtool-test-host"));
  EXPECT_EQ(endpoint.port, 2301);
  EXPECT_EQ(endpoint.user, "ann");
}

TEST_F(ClientConfigTest, AnIncludeInABlockHoldsForThatBlockOnly) {
  folder_.write(".ssh/inner", "User inner\nHost b*\nUser b\n");
  const std::string text = "Host a*\nInclude inner\nPort 23\nHost *\nUser other\n";
  EXPECT_EQ(resolve(text, "a1").user, "inner");
  EXPECT_EQ(resolve(text, "a1").port, 23);
  EXPECT_EQ(resolve(text, "b1").user, "other");
  EXPECT_EQ(resolve(text, "b1").port, 22);
}

TEST_F(ClientConfigTest, ABlockIsAskedOnceWhereItBegins) {
  folder_.write(".ssh/inner", "Port 23\nHost gpu*\nHostKeyAlias x\n");
  const Endpoint endpoint = resolve("Match !user ann\nUser ann\nInclude inner\nConnectTimeout 7\n");
  EXPECT_EQ(endpoint.user, "ann");
  EXPECT_EQ(endpoint.port, 23);
  EXPECT_EQ(endpoint.key_name, "x");
  EXPECT_EQ(endpoint.connect_timeout, std::chrono::seconds(7));
}

TEST_F(ClientConfigTest, ALineThatCannotBeReadIsNamed) {
  EXPECT_EQ(tests::fault_of([&] { config("Host *\nPort x\n"); }),
            home("given").string() + ":2: Port 'x' is not a number from 1 to 65535");
}

}  // namespace
}  // namespace dtool::ssh
