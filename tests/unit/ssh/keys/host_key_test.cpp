// SPDX-License-Identifier: MIT
// What a server has to show before it is trusted.
#include "ssh/keys/host_key.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "ssh/host_error.h"
#include "ssh/session/session.h"

namespace dtool::ssh {
namespace {

TEST(HostKey, OfAServerThatShowedNoneIsNotTrusted) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const OwnedFd server(sockets[1]);
  Reactor reactor;
  KnownHosts known_hosts;
  Session session(reactor, Endpoint{}, OwnedFd(sockets[0]), known_hosts);
  EXPECT_FALSE(session.is_still_known(known_hosts));
  try {
    session.require_known_host(known_hosts);
    FAIL() << "it is trusted";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::unreachable);
    EXPECT_STREQ(error.what(), "the server presented no host key");
  }
}

}  // namespace
}  // namespace dtool::ssh
