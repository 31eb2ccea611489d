// SPDX-License-Identifier: MIT
// Who a host is: which other one it is taken for, and which words of a host are believed.
#include "killfiles/host_identity.h"

#include <gtest/gtest.h>

namespace dtool::killfiles {
namespace {

const std::string kBoot = "5f0c91aa-1111-4222-8333-444455556666";
const std::string kOtherBoot = "00000000-1111-4222-8333-444455556666";
const std::string kMachine = "0123456789abcdef0123456789abcdef";
const std::string kKey = "ssh-ed25519 SHA256:" + std::string(43, 'k');
const std::string kOtherKey = "ssh-ed25519 SHA256:" + std::string(43, 'o');

HostIdentity host() {
  return {kMachine, "login1", kBoot, "4026531836", kKey};
}

HostIdentity rebooted() {
  HostIdentity now = host();
  now.boot_id = kOtherBoot;
  return now;
}

TEST(HostIdentity, OneBootAndProcessNamespaceIsOneHostWhateverElseChanged) {
  HostIdentity now = host();
  EXPECT_EQ(compare(host(), now), Likeness::same);
  now.name = "renamed";
  now.host_key = kOtherKey;
  now.machine_id.clear();
  EXPECT_EQ(compare(host(), now), Likeness::same);
}

TEST(HostIdentity, ItIsTheSameAfterAReboot) {
  HostIdentity now = rebooted();
  now.process_namespace = "4026532000";
  EXPECT_EQ(compare(host(), now), Likeness::rebooted);
}

TEST(HostIdentity, ClonesOfOneImageAreToldApartByNameOrKey) {
  HostIdentity clone = rebooted();
  clone.name = "login2";
  EXPECT_EQ(compare(host(), clone), Likeness::another);
  clone = rebooted();
  clone.host_key = kOtherKey;
  EXPECT_EQ(compare(host(), clone), Likeness::another);
  clone = rebooted();
  clone.machine_id = std::string(32, '0');
  EXPECT_EQ(compare(host(), clone), Likeness::another);
}

TEST(HostIdentity, NamespacesOfOneKernelAreSeveralHosts) {
  HostIdentity other = host();
  other.process_namespace = "4026532000";
  EXPECT_EQ(compare(host(), other), Likeness::another);
  other.process_namespace.clear();
  EXPECT_EQ(compare(host(), other), Likeness::same);
  other.name = "login2";
  EXPECT_EQ(compare(host(), other), Likeness::another);
}

TEST(HostIdentity, AKeyOfAnotherTypeSaysNothing) {
  HostIdentity now = rebooted();
  now.host_key = "ssh-rsa SHA256:" + std::string(43, 'o');
  EXPECT_EQ(compare(host(), now), Likeness::rebooted);
  now.machine_id.clear();
  EXPECT_EQ(compare(host(), now), Likeness::another) << "neither machine id nor key vouches for it";
  now.host_key = kKey;
  EXPECT_EQ(compare(host(), now), Likeness::rebooted);
}

TEST(HostIdentity, ABootIdThatIsHiddenNowProvesNoReboot) {
  HostIdentity now = host();
  now.boot_id.clear();
  EXPECT_EQ(compare(host(), now), Likeness::same);
  now.process_namespace = "4026532000";
  EXPECT_EQ(compare(host(), now), Likeness::another);
  now = host();
  now.boot_id.clear();
  now.host_key = kOtherKey;
  EXPECT_EQ(compare(host(), now), Likeness::another);
}

TEST(HostIdentity, WhereNothingWasRecordedNothingIsKnown) {
  EXPECT_EQ(compare({}, host()), Likeness::unknown);
  EXPECT_EQ(compare(host(), {}), Likeness::another);
}

TEST(HostIdentity, ALineReadsBack) {
  HostIdentity identity = host();
  identity.host_key.clear();  // it is not the host that tells it
  EXPECT_EQ(parse_identity(to_line(identity)), identity);
  EXPECT_EQ(to_line({}), "");
  identity = {"", "", kBoot, "", ""};
  EXPECT_EQ(to_line(identity), "- - " + kBoot + " -");
  EXPECT_EQ(parse_identity(to_line(identity)), identity);
}

TEST(HostIdentity, OtherWordsAreNotBelieved) {
  const std::string rest = " login1 " + kBoot + " 4026531836";
  EXPECT_TRUE(parse_identity(kMachine + rest));
  for (const std::string& line :
       {std::string(), std::string("-"), kMachine, kMachine + " ", kMachine + " login1 " + kBoot,
        kMachine + rest + " more", kMachine + rest + "x", kMachine + "0" + rest, "x" + rest,
        kMachine + " log\x1b[2Jin " + kBoot + " 1", kMachine + " a[$(id)] " + kBoot + " 1",
        kMachine + " login1 " + kBoot + "0 1", kMachine + "  login1 " + kBoot + " 1"}) {
    EXPECT_FALSE(parse_identity(line)) << line;
  }
}

TEST(HostIdentity, AnyLineEndsWithAnAnswer) {
  for (std::size_t length = 0; length < 200; ++length) {
    parse_identity(std::string(length, ' '));
    parse_identity(std::string(length, '-'));
  }
}

}  // namespace
}  // namespace dtool::killfiles
