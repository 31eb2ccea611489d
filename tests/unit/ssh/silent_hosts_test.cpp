// SPDX-License-Identifier: MIT
// Who counts as silent, so that a later step of a command does not wait for it again.
#include "ssh/connect_options.h"

#include <gtest/gtest.h>

namespace dtool::ssh {
namespace {

const Host kHost = parse_host("me@h1:23");
const HostError kTimeIsUp{Failure::connect_timed_out, "no answer from port 22 in time",
                          "is it up?"};

TEST(SilentHosts, KnowsWhyAHostThatWasWaitedForInVainFailed) {
  SilentHosts hosts;
  EXPECT_FALSE(hosts.find(kHost));
  hosts.note_failure(kHost, kTimeIsUp);
  ASSERT_TRUE(hosts.find(kHost));
  EXPECT_STREQ(hosts.find(kHost)->what(), kTimeIsUp.what());
  EXPECT_EQ(hosts.find(kHost)->hint(), kTimeIsUp.hint());
  EXPECT_FALSE(hosts.find(parse_host("h1")));
}

TEST(SilentHosts, ARefusalComesAtOnceAndIsAskedForAgain) {
  SilentHosts hosts;
  hosts.note_failure(kHost, {Failure::unreachable, "port 22 refused the connection"});
  EXPECT_FALSE(hosts.find(kHost));
}

TEST(SilentHosts, AHostThatOnceAnsweredIsWaitedForAgain) {
  SilentHosts hosts;
  hosts.note_answer(kHost);
  hosts.note_failure(kHost, kTimeIsUp);
  EXPECT_FALSE(hosts.find(kHost));
}

}  // namespace
}  // namespace dtool::ssh
