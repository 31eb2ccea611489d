// SPDX-License-Identifier: MIT
#include "sync/relay/host/package_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "ssh/host/channel.h"
#include "tests/fuzz/stranger.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(PackageServer, IsHeldByASlowHostForItsTimeAndNoLonger) {
  const std::string secret = "a secret of this test";
  const tests::TemporaryFolder folder;
  const std::filesystem::path file = folder.write("package", "");
  std::filesystem::resize_file(file, std::uintmax_t{64} << 20U);  // more than a socket holds
  PackageServer server(file, secret, 2s);
  const fuzz::Stranger host(server.port());
  host.say(make_hello(secret, 0));
  bool is_over = false;
  while (host.hear(is_over).empty() && !is_over) {
  }
  EXPECT_FALSE(is_over);
  const auto began = Clock::now();
  server.finish();
  EXPECT_LT(Clock::now() - began, 7s);  // a host that takes nothing counts as gone after ten
}

}  // namespace
}  // namespace dtool::host
