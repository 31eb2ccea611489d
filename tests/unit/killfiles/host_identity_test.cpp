// SPDX-License-Identifier: MIT
// Who a host is: which other one it is taken for, and which words of a host are believed.
#include "killfiles/killfile.h"

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

TEST(HostIdentity, EachPartIsEmptyOrOfItsForm) {
  const auto expect = [](std::string HostIdentity::*part, bool is_good,
                         const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      HostIdentity identity = host();
      identity.*part = value;
      EXPECT_EQ(is_well_formed(identity), is_good) << value;
    }
  };
  const std::string hash = " SHA256:" + std::string(43, 'k');
  expect(&HostIdentity::machine_id, true, {"", std::string(32, 'a'), std::string(32, 'f')});
  expect(&HostIdentity::machine_id, false,
         {std::string(31, 'a'), std::string(33, 'a'), std::string(32, 'g'), std::string(32, '`'),
          std::string(32, 'A')});
  expect(&HostIdentity::name, true, {"", "a", "A-b_c.9", std::string(64, 'x')});
  expect(&HostIdentity::name, false, {"-", "a b", "a/b", std::string(65, 'x')});
  expect(&HostIdentity::boot_id, true, {"", kBoot, kOtherBoot});
  expect(&HostIdentity::boot_id, false,
         {kBoot + "0", kBoot.substr(1), "5f0c91aa01111-4222-8333-444455556666",
          "5f0c91a--1111-4222-8333-444455556666"});
  expect(&HostIdentity::process_namespace, true, {"", "0", std::string(20, '9')});
  expect(&HostIdentity::process_namespace, false, {"x", "-1", std::string(21, '9')});
  expect(&HostIdentity::host_key, true,
         {"", kKey, "a" + hash, std::string(64, 'a') + hash,
          "sk-ssh-ed25519@openssh.com SHA256:" + std::string(42, '+') + "/"});
  expect(&HostIdentity::host_key, false,
         {"ssh-rsa", hash, std::string(65, 'a') + hash, "a" + hash + "k", "a_b" + hash,
          "a SHA257:" + std::string(43, 'k'), "a SHA256:" + std::string(42, 'k') + "="});
}

TEST(HostIdentity, IsDescribedByWhatIsKnownOfIt) {
  EXPECT_EQ(describe({}), "a host that does not say who it is");
  EXPECT_EQ(describe({"", "", kBoot, "", ""}), "? (boot 5f0c91aa)");
  EXPECT_EQ(describe(host()),
            "login1 (boot 5f0c91aa, machine 01234567, process namespace 4026531836, " + kKey + ")");
}

TEST(HostIdentity, AHostWithoutANameIsNotKnownAgain) {
  HostIdentity nameless = host();
  nameless.name.clear();
  nameless.process_namespace.clear();
  EXPECT_EQ(compare(nameless, nameless), Likeness::another);
  HostIdentity without_machine_id = host();
  without_machine_id.process_namespace.clear();
  HostIdentity now = without_machine_id;
  now.machine_id.clear();
  EXPECT_EQ(compare(without_machine_id, now), Likeness::same);
  EXPECT_EQ(compare(now, without_machine_id), Likeness::same);
  now.machine_id = std::string(32, '0');
  EXPECT_EQ(compare(without_machine_id, now), Likeness::another);
}

TEST(HostIdentity, WithoutANamespaceThenOrNowAHiddenBootIdProvesNothing) {
  HostIdentity hidden = host();
  hidden.boot_id.clear();
  HostIdentity recorded = host();
  recorded.process_namespace.clear();
  EXPECT_EQ(compare(recorded, hidden), Likeness::another);
  hidden.process_namespace.clear();
  EXPECT_EQ(compare(recorded, hidden), Likeness::another);
  EXPECT_EQ(compare(host(), hidden), Likeness::another);
}

TEST(HostIdentity, AKeyOfOneSideOnlySaysNothing) {
  HostIdentity keyless = rebooted();
  keyless.host_key.clear();
  EXPECT_EQ(compare(host(), keyless), Likeness::rebooted);
  keyless.machine_id.clear();
  EXPECT_EQ(compare(host(), keyless), Likeness::another);
  EXPECT_EQ(compare(keyless, keyless), Likeness::same);
}

TEST(HostIdentity, AnyLineEndsWithAnAnswer) {
  for (std::size_t length = 0; length < 200; ++length) {
    parse_identity(std::string(length, ' '));
    parse_identity(std::string(length, '-'));
  }
}

}  // namespace
}  // namespace dtool::killfiles
