// SPDX-License-Identifier: MIT
// Spoilt lines of known_hosts: none lets a key in that it does not hold for that very host, and a
// spoilt line takes back nothing that another line forbids.
#include <gtest/gtest.h>

#include <string_view>

#include "ssh/keys/known_hosts.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

constexpr std::string_view kBase64 =
    "AAAAC3NzaC1lZDI1NTE5AAAAIEMtKFlkSfqGob2CtTT+En6Xj7zSm5J/DR4iKmHvX5da";

class KnownHostsFuzz : public testing::Test {
 protected:
  HostKeyState state(const std::string& text, std::uint16_t port = 22) {
    Endpoint endpoint;
    endpoint.key_name = "gpu7";
    endpoint.key_port = port;
    endpoint.known_hosts_files = {folder_.write("known_hosts", text)};
    KnownHosts known;
    known.types_of(endpoint);
    return known.judge(endpoint, read_key_blob("ssh-ed25519 " + std::string(kBase64)).value())
        .state;
  }

  static fuzz::Mutator mutator() {
    const std::string key = " ssh-ed25519 " + std::string(kBase64);
    return fuzz::Mutator(
        {"gpu7" + key, "login,gpu7,10.0.0.7" + key, "[gpu7]:2222,[10.0.0.7]:22" + key,
         "gpu?,!gpu8" + key, "@cert-authority *.cluster,gpu7" + key, "@revoked gpu7" + key,
         "|1|AfkFk8Qoc4EeiN+DMk6zh8MJKAY=|42bTzW2Z/NRIaTRQ91/KeYsFUqs=" + key,
         "|1|K9TtxCyXjEGEbeZSxyI7/QPbepU=|rpf82sBUml4fC2an630se3A9dAo=" + key},
        {"gpu7", "GPU7", "[gpu7]:22", "[gpu7]:2222", ",", "*", "!", " ", "\t", "|1|", "=",
         "]:", "#", "\r", "@revoked ", "@cert-authority ", "ssh-rsa"});
  }

  tests::TemporaryFolder folder_;
};

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST_F(KnownHostsFuzz, NoLineLetsInAKeyThatItDoesNotHold) {
  fuzz::Mutator lines = mutator();
  int known = 0;
  fuzz::feed(lines, 1500, [&](const std::string& line) {
    const std::string text = line + "\n";
    for (const std::uint16_t port : {22, 2222}) {
      if (state(text, port) != HostKeyState::known) continue;
      ++known;
      EXPECT_TRUE(holds(text, kBase64)) << text;
    }
  });
  EXPECT_GT(known, 100);  // else the lines are spoilt beyond use
}

TEST_F(KnownHostsFuzz, WhatIsForbiddenStaysForbiddenBesideAnyLine) {
  fuzz::Mutator lines = mutator();
  const std::string key = "ssh-ed25519 " + std::string(kBase64) + "\n";
  fuzz::feed(lines, 700, [&](const std::string& spoilt) {
    EXPECT_EQ(state("@revoked gpu7 " + key + spoilt), HostKeyState::revoked) << spoilt;
    EXPECT_EQ(state(spoilt + "\n@revoked gpu7 " + key), HostKeyState::revoked) << spoilt;
    EXPECT_NE(state("gpu7 " + key + spoilt), HostKeyState::unknown) << spoilt;
  });
}

}  // namespace
}  // namespace dtool::ssh
