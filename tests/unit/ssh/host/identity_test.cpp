// SPDX-License-Identifier: MIT
// Who a host says it is: four words, in plain characters.
#include "ssh/host/identity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace dtool::host {
namespace {

/// Says who this host is under that name, in a process of its own.
[[noreturn]] void identify_as(const std::string& name) {
  if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) ::_exit(1);
  std::fputs(identify_host().c_str(), stderr);
  ::_exit(0);
}

TEST(Identity, HasTheHostsNameInPlainCharacters) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be called otherwise";
  EXPECT_EXIT(identify_as("h09_.-azAZ ;\"ü"), testing::ExitedWithCode(0),
              "^([0-9a-f]{32}|-) h09_\\.-azAZ_____ [0-9a-f-]{36} [0-9]+$");
  EXPECT_EXIT(identify_as(std::string(64, 'x')), testing::ExitedWithCode(0), " x{64} ");
}

}  // namespace
}  // namespace dtool::host
