// SPDX-License-Identifier: MIT
// How one host is read and written.
#include "ssh/host.h"

#include <gtest/gtest.h>

#include "tests/unit/fault.h"

namespace dtool::ssh {
namespace {

using tests::fault_of;

Host host(std::string name, std::string user = "", std::uint16_t port = 0) {
  return {std::move(name), std::move(user), port, false};
}

std::string fault(const std::string& text) {
  return fault_of([&] { parse_host(text); });
}

TEST(Host, IsReadWithUserAndPort) {
  EXPECT_EQ(parse_host("gpu01"), host("gpu01"));
  EXPECT_EQ(parse_host("ann@gpu01"), host("gpu01", "ann"));
  EXPECT_EQ(parse_host("gpu01:2222"), host("gpu01", "", 2222));
  EXPECT_EQ(parse_host("ann@gpu-1.example.org:65535"), host("gpu-1.example.org", "ann", 65535));
  EXPECT_EQ(parse_host("10.0.0.1:1"), host("10.0.0.1", "", 1));
}

TEST(Host, IsReadFromIpv6AddressesWithBracketsOrWithout) {
  EXPECT_EQ(parse_host("fe80::1"), host("fe80::1"));
  EXPECT_EQ(parse_host("::1"), host("::1"));
  EXPECT_EQ(parse_host("ann@fe80::1%eth0"), host("fe80::1%eth0", "ann"));
  EXPECT_EQ(parse_host("[fe80::1]"), host("fe80::1"));
  EXPECT_EQ(parse_host("ann@[fe80::1]:22"), host("fe80::1", "ann", 22));
}

TEST(Host, OfAUserWhoseNameHoldsAnAtSignIsCutAtTheLastOne) {
  EXPECT_EQ(parse_host("ann@example.org@gpu01"), host("gpu01", "ann@example.org"));
}

TEST(Host, NamedLocalIsThisMachine) {
  EXPECT_TRUE(parse_host("local").is_local);
  EXPECT_FALSE(parse_host("localhost").is_local);
  EXPECT_FALSE(parse_host("local.example.org").is_local);
  EXPECT_EQ(to_string(parse_host("local")), "local");
}

TEST(Host, IsWrittenAsTheShortestTextThatReadsBack) {
  for (const std::string text : {"gpu01", "ann@gpu01", "gpu01:2222", "ann@gpu01:2222", "fe80::1",
                                 "[fe80::1]:22", "local", "ann@[fe80::1]:22", "ann@::1"}) {
    EXPECT_EQ(to_string(parse_host(text)), text);
  }
  EXPECT_EQ(to_string(parse_host("[::1]")), "::1");
}

TEST(Host, WithABadPortIsRefused) {
  EXPECT_EQ(fault("gpu01:0"), "'gpu01:0' is not a host: port '0' is not a number from 1 to 65535");
  for (const std::string port : {"65536", "abc", "", "-1", "+22", "22x", " 22", "99999999999"}) {
    EXPECT_NE(fault("gpu01:" + port).find("port '" + port + "' is not"), std::string::npos) << port;
    EXPECT_NE(fault("[::1]:" + port).find("port '" + port + "' is not"), std::string::npos) << port;
  }
}

TEST(Host, WithoutANameOrAUserIsRefused) {
  EXPECT_EQ(fault(""), "'' is not a host: the host name is empty");
  EXPECT_EQ(fault("user@"), "'user@' is not a host: the host name is empty");
  EXPECT_EQ(fault(":22"), "':22' is not a host: the host name is empty");
  EXPECT_EQ(fault("@"), "'@' is not a host: the user before '@' is empty");
  EXPECT_EQ(fault("@gpu01"), "'@gpu01' is not a host: the user before '@' is empty");
}

TEST(Host, WithUnbalancedBracketsIsRefused) {
  EXPECT_EQ(fault("[fe80::1"), "'[fe80::1' is not a host: '[' has no partner");
  EXPECT_NE(fault("fe80::1]"), "");
  EXPECT_EQ(fault("gpu01]"), "'gpu01]' is not a host: ']' has no partner");
  EXPECT_NE(fault("[]"), "");
  EXPECT_NE(fault("[gpu01]:22"), "");
  EXPECT_EQ(fault("[::1]22"), "'[::1]22' is not a host: '22' follows the address");
}

TEST(Host, WithAnAddressThatIsNoneIsRefused) {
  for (const std::string text : {"1::2::3", "a:b:c", "gpu01:22:33", "[fe80::zz]", "fe80::1%"}) {
    EXPECT_NE(fault(text).find("is no IPv6 address"), std::string::npos) << text;
  }
}

TEST(Host, ThatCouldPassForAnOptionOrHoldsOddCharactersIsRefused) {
  for (const std::string text :
       {"-oProxyCommand=x", "ann@-x", "-l@gpu01", "gpu 01", "gpu01\n", "gpu01;id", "$(id)", "a/b",
        "ann:secret@gpu01", "a b@gpu01", "an`n@gpu01", "gpu\xc3\xa4"}) {
    EXPECT_NE(fault(text), "") << text;
  }
  EXPECT_NE(fault(std::string("gpu\0x", 5)), "");
}

TEST(Host, LocalTakesNoUserOrPort) {
  for (const std::string text : {"ann@local", "local:22"}) {
    EXPECT_NE(fault(text).find("\nhint: 'localhost' is this machine over SSH"), std::string::npos);
  }
}

TEST(RequireDistinct, NamesTheFirstHostThatStandsTwice) {
  EXPECT_EQ(
      fault_of([] {
        require_distinct({host("a"), host("b", "", 22), host("c"), host("b", "", 22), host("a")});
      }),
      "host 'b:22' is named twice");
}

TEST(RequireDistinct, TakesPort22ForSshsOwn) {
  EXPECT_EQ(fault_of([] {
              require_distinct({host("a"), host("a", "", 22)});
            }),
            "host 'a:22' is named twice");
  EXPECT_EQ(fault_of([] {
              require_distinct({host("a", "ann", 22), host("a", "ann")});
            }),
            "host 'ann@a' is named twice");
}

TEST(RequireDistinct, TakesOtherUsersAndPortsForOtherHosts) {
  EXPECT_EQ(fault_of([] {
              require_distinct({host("a"), host("a", "ann"), host("a", "", 23)});
            }),
            "");
}

}  // namespace
}  // namespace dtool::ssh
