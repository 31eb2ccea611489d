// SPDX-License-Identifier: MIT
// Where rank 0 listens, and how many processes a machine runs, as typed.
#include "cli/plan/flags.h"

#include <gtest/gtest.h>

#include "cli/action.h"
#include "cli/ready/check_hosts.h"
#include "ssh/host.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

Targets on(const std::string& hosts) {
  Targets targets;
  targets.hosts = ssh::parse_hosts(hosts, {});
  targets.connect.config_file = "none";
  return targets;
}

std::string read(const std::string& text, const Targets& targets) {
  try {
    const ListenerAddress listener = parse_listener(text, targets);
    return listener.address + " " + std::to_string(listener.port);
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Listener, IsTheFirstHostByItsName) {
  EXPECT_EQ(read("10.0.0.1:29500", on("10.0.0.[1-3]")), "10.0.0.1 29500");
  EXPECT_EQ(read("gpu01:1", on("ann@gpu01:2222,gpu02")), " 1");  // at the address that it has
  EXPECT_EQ(read("[fe80::1]:65535", on("[fe80::1]:22,gpu02")), "fe80::1 65535");
}

TEST(Listener, IsTheFirstHostByTheAddressThatTheConfigurationGivesIt) {
  const tests::TemporaryFolder folder;
  Targets targets = on("gpu01,gpu02");
  targets.connect.config_file = folder.write("config", "Host gpu01\n HostName 10.0.0.7\n");
  EXPECT_EQ(read("10.0.0.7:29500", targets), "10.0.0.7 29500");
}

TEST(Listener, OnThisMachineHasItsLoopbackNames) {
  for (const std::string name : {"127.0.0.1", "localhost", "local"}) {
    EXPECT_EQ(read(name + ":29500", on("local")), name + " 29500");
  }
  EXPECT_EQ(read("[::1]:29500", on("local")), "::1 29500");
}

TEST(Listener, OnThisMachineIsReachedOnTheWayToTheFirstOtherOne) {
  const tests::TemporaryFolder folder;
  Targets targets = on("local,gpu01,gpu02");
  targets.connect.config_file = folder.write("config", "Host gpu01\n HostName 10.0.0.7\n");
  EXPECT_EQ(peer_of(targets), "10.0.0.7");
  EXPECT_EQ(peer_of(on("gpu01,local")), "");
  EXPECT_EQ(peer_of(on("local")), "");
}

TEST(Listener, AtALoopbackAddressIsCutOffFromOtherMachines) {
  std::vector<Checked> checked(3);
  for (Checked& each : checked) each.identity = {"machine", "here", "boot", "space", ""};
  checked[2].identity = {"other", "there", "boot2", "space2", ""};
  checked[2].result.host = ssh::parse_host("gpu01");
  EXPECT_EQ(cut_off("127.0.0.1", checked), std::vector{checked[2].result.host});
  EXPECT_TRUE(cut_off("10.0.0.1", checked).empty());
  checked.pop_back();
  EXPECT_TRUE(cut_off("127.0.0.1", checked).empty());
}

TEST(Listener, OnAnotherMachineThanTheFirstIsRefused) {
  const std::string message = read("gpu02:29500", on("gpu[01-03]"));
  EXPECT_NE(message.find("gpu02 is machine 1, but rank 0 listens on the first machine, gpu01"),
            std::string::npos)
      << message;
}

TEST(Listener, OnNoneOfTheMachinesIsRefused) {
  EXPECT_NE(
      read("10.9.9.9:29500", on("gpu[01-03]")).find("10.9.9.9 is not one of the hosts gpu[01-03]"),
      std::string::npos);
}

TEST(Listener, APortThatIsNoneIsRefused) {
  for (const std::string text :
       {"gpu01", "gpu01:", "gpu01:0", "gpu01:65536", "gpu01:-1", "gpu01:+1", "gpu01:29500x",
        "gpu01: 1", ":29500", "[fe80::1]", "gpu01:99999999999999999999", ""}) {
    EXPECT_TRUE(read(text, on("gpu01"))
                    .starts_with("--distributed_ip_and_port wants IP:PORT or auto, not " + text))
        << text;
  }
}

TEST(Processes, AreAWholeNumber) {
  EXPECT_EQ(parse_processes("1"), 1);
  EXPECT_EQ(parse_processes("4096"), 4096);
  for (const std::string text : {"0", "-1", "4097", "2.0", "two", "", " 1", "1 "}) {
    EXPECT_THROW(parse_processes(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace dtool::cli
