// SPDX-License-Identifier: MIT
// Ports, addresses and interfaces of this host, and the trial of a listener on its loopback.
#include "ssh/host/network.h"

#include <gtest/gtest.h>

#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/answers/answers.h"
#include "ssh/host/session/report_port.h"
#include "ssh/wire/check.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(HostNetwork, PortsThatListenAreReadFromTheKernelsTable) {
  constexpr std::string_view kTable =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
      "   1: 0100007F:0016 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0\n"
      "   2: 00000000000000000000000000000000:FFFF 00000000:0000 0A 00000000\n"
      "   3: 0100007F:1FFFF 00000000:0000 0A 00000000\n"
      "   4: a[$(id)] x 0A\n"
      "   5: :";
  EXPECT_EQ(parse_listening_ports(kTable), (std::set<std::uint16_t>{8080, 65535}));
}

TEST(HostNetwork, APortThatIsTakenIsNotFound) {
  std::set<std::uint16_t> taken;
  for (int port = 20000; port <= 31999; ++port) {
    if (port != 25000) taken.insert(static_cast<std::uint16_t>(port));
  }
  EXPECT_EQ(find_free_port(taken), 25000);
  taken.insert(25000);
  EXPECT_EQ(find_free_port(taken), 0);
}

/// Has a port at all addresses of one family, without listening there.
Descriptor take_alone(int family, std::uint16_t port) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const Address all = parse_address(family == AF_INET6 ? "::" : "0.0.0.0", port);
  return ::bind(socket.get(), all.get(), all.size) == 0 ? std::move(socket) : Descriptor();
}

TEST(HostNetwork, EachPortOfTheRangeIsAskedForOnce) {
  std::vector<std::uint16_t> asked;
  EXPECT_EQ(find_port([&asked](std::uint16_t port) {
              asked.push_back(port);
              return false;
            }),
            0);
  EXPECT_EQ(asked.size(), 12'000U);
  const std::set<std::uint16_t> different(asked.begin(), asked.end());
  EXPECT_EQ(different.size(), 12'000U);
  EXPECT_EQ(*different.begin(), 20'000);
  EXPECT_EQ(*different.rbegin(), 31'999);
}

TEST(HostNetwork, APortThatSomebodyHasOnOneFamilyIsNotTakenOnTheOther) {
  for (const int family : {AF_INET, AF_INET6}) {
    Descriptor others;
    const std::uint16_t port = find_port([&](std::uint16_t each) {
      others = take_alone(family, each);
      return others.is_open();
    });
    if (port == 0) GTEST_SKIP() << "this host lacks IPv4 or IPv6";
    EXPECT_EQ(port_of(others), port);
    for (const auto& open : {hold_port, listen_on, listen_on_held}) {
      errno = 0;
      EXPECT_FALSE(open(port).is_open()) << family;
      EXPECT_EQ(errno, EADDRINUSE);
    }
  }
}

TEST(HostNetwork, AHeldPortIsLeftToTheListenerThatWasMeant) {
  // Other programs hold and try ports at the same time: it may not be free any more once it is
  // known.
  Descriptor held;
  const std::uint16_t port = find_port([&held](std::uint16_t each) {
    held = hold_port(each);
    return held.is_open();
  });
  ASSERT_NE(port, 0);
  EXPECT_FALSE(hold_port(port).is_open());
  EXPECT_FALSE(listen_on(port).is_open());
  const Descriptor listener = listen_on_held(port);
  ASSERT_TRUE(listener.is_open());
  EXPECT_EQ(port_of(listener), port);
  held = Descriptor();
  EXPECT_FALSE(hold_port(port).is_open());
  EXPECT_FALSE(listen_on(port).is_open());
}

TEST(HostNetwork, AFreePortIsFoundBesideThoseThatAreHeldAndInNoTable) {
  std::vector<Descriptor> held;
  std::vector<Descriptor> listeners;
  for (std::uint16_t port = 20000; port < 20300; ++port) held.push_back(hold_port(port));
  for (int i = 0; i < 200; ++i) {
    listeners.push_back(listen_on_free_port());
    ASSERT_TRUE(listeners.back().is_open()) << i;
  }
}

TEST(HostNetwork, LoopbackHasItsInterface) {
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("192.0.2.77"), "");
  EXPECT_EQ(interface_of(""), "");
  EXPECT_EQ(local_address_towards(parse_address("127.0.0.9", 1)), "127.0.0.1");
  EXPECT_EQ(local_address_towards(parse_address("no address", 1)), "");
}

TEST(HostNetwork, LoopbackHasItsInterfaceOnIpv6) {
  if (interface_of("::1").empty()) GTEST_SKIP() << "this host has no IPv6";
  EXPECT_EQ(interface_of("::1"), "lo");
  EXPECT_EQ(local_address_towards(parse_address("::1", 1)), "::1");
}

TEST(HostNetwork, TheAddressOfThisHostIsTheOneThatSshdTells) {
  const tests::TemporaryVariable connection("SSH_CONNECTION", "192.0.2.1 4711 192.0.2.2 22");
  EXPECT_EQ(own_address(), "192.0.2.2");
  ::unsetenv("SSH_CONNECTION");
  EXPECT_EQ(own_address(), "");
}

std::string peer(const char* address) {
  return address_in(parse_address(address, 1).bytes);
}

TEST(HostNetwork, AllLoopbackAddressesAreTheSamePeer) {
  for (const char* each : {"127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"})
    EXPECT_EQ(peer(each), "here") << each;
  EXPECT_EQ(peer("192.0.2.1"), std::string("\xc0\0\2\1", 4));
  EXPECT_EQ(peer("2001:db8::2"), "\x20\1\x0d\xb8" + std::string(11, '\0') + "\2");
  for (const char* each :
       {"128.0.0.1", "126.0.0.1", "::2", "::ffff:192.0.2.127", "7f00::1", "::7f00:1"})
    EXPECT_NE(peer(each), "here") << each;
}

TEST(HostNetwork, WhoeverListensIsInTheKernelsTable) {
  const Descriptor listener = listen_on_free_port();
  ASSERT_TRUE(listener.is_open());
  EXPECT_TRUE(listening_ports().contains(port_of(listener)));
  const Descriptor four = take_alone(AF_INET, 0);
  ASSERT_TRUE(four.is_open());
  EXPECT_FALSE(listening_ports().contains(port_of(four)));
  ASSERT_EQ(::listen(four.get(), 1), 0);
  EXPECT_TRUE(listening_ports().contains(port_of(four)));
}

/// The family of a listener where a socket of IPv6 fails with that error; 0: there is none.
int family_without_ipv6(int error) {
  tests::refuse_call(SYS_socket, error, {0, ~0U, AF_INET6});
  const Descriptor listener = listen_on(0);
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size);
  return name.ss_family;
}

TEST(HostNetwork, WithoutIpv6AListenerHasIpv4) {
  for (const int error : {EAFNOSUPPORT, EADDRNOTAVAIL})
    EXPECT_EXIT(::_exit(family_without_ipv6(error)), testing::ExitedWithCode(AF_INET), "");
  EXPECT_EXIT(::_exit(family_without_ipv6(EMFILE)), testing::ExitedWithCode(0), "");
}

class ListenerOnLoopback : public testing::Test {
 protected:
  ListenerOnLoopback() {
    Watch watch;
    port_ = ReportPort(0, 2, "", watch).port();
    ListenRequest request{"127.0.0.1", port_, kToken, 2, 20};
    reply_ = listen_for_trial(request);
  }
  ~ListenerOnLoopback() override {
    if (reply_.pid <= 0) return;
    ::kill(static_cast<pid_t>(reply_.pid), SIGKILL);
    ::waitpid(static_cast<pid_t>(reply_.pid), nullptr, 0);
  }

  ReachReply reach(const std::string& token, std::int64_t place = 1) const {
    return reach_for_trial({"127.0.0.1", port_, token, place, 2000});
  }

  static inline const std::string kToken = std::string(32, 'a');
  std::uint16_t port_ = 0;
  ListenReply reply_;
};

TEST_F(ListenerOnLoopback, IsReachedByWhoKnowsTheToken) {
  EXPECT_EQ(reply_.fault, "");
  EXPECT_EQ(reply_.interface, "lo");
  const ReachReply reply = reach(kToken);
  EXPECT_TRUE(reply.is_reached) << reply.fault;
  EXPECT_EQ(reply.interface, "lo");
}

TEST_F(ListenerOnLoopback, TellsNobodyElseAnything) {
  EXPECT_EQ(reach(std::string(32, 'b')).fault, "something else listens there");
  EXPECT_EQ(reach(kToken, 2).fault, "something else listens there");
  EXPECT_TRUE(reach(kToken).is_reached);
}

TEST_F(ListenerOnLoopback, OfTwoTheSecondSaysWhyNot) {
  const ListenReply second = listen_for_trial({"127.0.0.1", port_, kToken, 2, 20});
  EXPECT_EQ(second.pid, 0);
  EXPECT_EQ(second.fault, "Address already in use");
}

TEST(ParseAddress, ReadsBothFamiliesWithTheirPortAndInterface) {
  const Address four = parse_address("192.0.2.7", 4711);
  const auto& in = reinterpret_cast<const sockaddr_in&>(four.bytes);
  EXPECT_EQ(four.size, sizeof in);
  EXPECT_EQ(in.sin_family, AF_INET);
  EXPECT_EQ(ntohl(in.sin_addr.s_addr), 0xc0000207U);
  EXPECT_EQ(ntohs(in.sin_port), 4711);
  const Address six = parse_address("fe80::1%lo", 4711);
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(six.bytes);
  EXPECT_EQ(six.size, sizeof in6);
  EXPECT_EQ(in6.sin6_family, AF_INET6);
  EXPECT_EQ(in6.sin6_addr.s6_addr[0], 0xfe);
  EXPECT_EQ(in6.sin6_addr.s6_addr[15], 1);
  EXPECT_EQ(ntohs(in6.sin6_port), 4711);
  EXPECT_EQ(in6.sin6_scope_id, ::if_nametoindex("lo"));
  EXPECT_NE(in6.sin6_scope_id, 0U);
  for (const char* wrong : {"", "name", "192.0.2", "fe80::1::2"})
    EXPECT_EQ(parse_address(wrong, 1).size, 0U) << wrong;
}

TEST(ReachForTrial, SaysWhyNothingWasReached) {
  Watch watch;
  const std::uint16_t closed = ReportPort(0, 2, "", watch).port();
  EXPECT_EQ(reach_for_trial({"127.0.0.1", closed, "t", 1, 500}).fault, "connection refused");
  EXPECT_THROW(reach_for_trial({"name", 1, "t", 1, 500}), std::runtime_error);
  EXPECT_THROW(reach_for_trial({"127.0.0.1", 65536, "t", 1, 500}), std::runtime_error);
  EXPECT_EQ(reach_for_trial({"", 0, "", 0, 0}).fault, "");
}

}  // namespace
}  // namespace dtool::host
