// SPDX-License-Identifier: MIT
// What hosts are served: packages that grow, that come later, and that will not come.
#include "ssh/host/tree/package_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "killfiles/channel/channel.h"
#include "ssh/wire/tree.h"
#include "tests/fuzz/stranger.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class PackageServerTest : public testing::Test {
 protected:
  Descriptor open(const std::string& name) const {
    return Descriptor(::open((folder_.path() / name).c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  }
  void greet(const fuzz::Stranger& host, int package) const {
    const std::string hello = make_hello(secret_, package);
    host.say(hello);
    EXPECT_TRUE(is_welcome(secret_, hello, host.hear_all(kWelcomeSize).value_or("")));
  }
  const std::string secret_ = "a secret of this test";
  const tests::TemporaryFolder folder_;
  const tests::TemporaryVariable connection_{"SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22"};
  std::optional<PackageServer> server_{std::in_place, secret_, 2s};
};

TEST_F(PackageServerTest, EachHostGetsThePackageThatItNamesAsItGrows) {
  folder_.write("one", "one");
  folder_.write("two", "two");
  server_->add(1, open("one"));
  const Descriptor two = open("two");
  server_->add(2, two);
  const fuzz::Stranger first(server_->port());
  greet(first, 1);
  const fuzz::Stranger second(server_->port());
  greet(second, 2);
  EXPECT_EQ(second.hear_all(3), "two");
  write_all(two.get(), " more");
  EXPECT_EQ(first.hear_all(3), "one");
  EXPECT_EQ(second.hear_all(5), " more");
}

TEST_F(PackageServerTest, AHostWaitsForThePackageThatComesLater) {
  const fuzz::Stranger host(server_->port());
  greet(host, 7);
  folder_.write("late", "late");
  server_->add(7, open("late"));
  EXPECT_EQ(host.hear_all(4), "late");
}

TEST_F(PackageServerTest, WhatIsCutOffIsNotWaitedFor) {
  folder_.write("file", "half");
  server_->add(3, open("file"));
  const fuzz::Stranger host(server_->port());
  greet(host, 3);
  EXPECT_EQ(host.hear_all(4), "half");
  server_->cut(3);
  EXPECT_EQ(host.hear_all(), "");
}

TEST_F(PackageServerTest, WhoeverHasBegunGetsAPackageThatIsDropped) {
  folder_.write("file", "half");
  const Descriptor file = open("file");
  server_->add(3, file);
  const fuzz::Stranger host(server_->port());
  greet(host, 3);
  EXPECT_EQ(host.hear_all(4), "half");
  server_->drop(3);
  write_all(file.get(), "more");
  EXPECT_EQ(host.hear_all(4), "more");
}

TEST_F(PackageServerTest, WithoutTheSecretNothingIsServed) {
  folder_.write("file", "all");
  server_->add(0, open("file"));
  const fuzz::Stranger host(server_->port());
  host.say(make_hello("another secret", 0));
  EXPECT_EQ(host.hear_all(), "");
}

TEST_F(PackageServerTest, AtItsEndNobodyWaitsForThoseThatItStillServes) {
  constexpr std::size_t kSize = std::size_t{64} << 20U;  // more than a socket holds
  std::filesystem::resize_file(folder_.write("package", ""), kSize);
  server_->add(0, open("package"));
  const fuzz::Stranger host(server_->port());
  greet(host, 0);
  const auto began = Clock::now();
  server_->finish();
  EXPECT_LT(Clock::now() - began, 1s);
  EXPECT_EQ(host.hear_all(kSize).value_or("").size(), kSize);
}

TEST_F(PackageServerTest, AfterItsEndASlowHostIsServedForItsTimeAndNoLonger) {
  std::filesystem::resize_file(folder_.write("package", ""), std::uintmax_t{64} << 20U);
  server_->add(0, open("package"));
  const fuzz::Stranger host(server_->port());
  greet(host, 0);
  const auto began = Clock::now();
  server_->finish();
  while (fuzz::Stranger(server_->port()).is_there() && Clock::now() - began < 9s)
    std::this_thread::sleep_for(100ms);
  EXPECT_GT(Clock::now() - began, 1500ms);
  EXPECT_LT(Clock::now() - began, 7s);  // a host that takes nothing counts as gone after ten
}

TEST_F(PackageServerTest, WhatNobodyTellsAnythingEndsAndTheNextParcelHasAnother) {
  RelayPart part;
  part.secret.text = secret_;
  std::optional<PackageServer> server(std::in_place, secret_, 2s, 1s);
  const std::uint16_t port = server->port();
  EXPECT_EQ(PackageServer::of(part, server).port(), port) << "it is there";
  folder_.write("file", "half");
  const Descriptor file = open("file");
  server->add(0, file);
  const fuzz::Stranger host(port);
  greet(host, 0);
  EXPECT_EQ(host.hear_all(4), "half");
  std::this_thread::sleep_for(2s);
  write_all(file.get(), "more");
  EXPECT_EQ(host.hear_all(4), "more") << "it is there for its peers";
  server->cut(0);
  const auto began = Clock::now();
  while (fuzz::Stranger(port).is_there() && Clock::now() - began < 10s)
    std::this_thread::sleep_for(50ms);
  EXPECT_GT(Clock::now() - began, 900ms) << "since it was told";
  EXPECT_FALSE(fuzz::Stranger(port).is_there());
  PackageServer::of(part, server).add(0, file);
  const fuzz::Stranger next(server->port());
  greet(next, 0);
  EXPECT_EQ(next.hear_all(8), "halfmore");
}

TEST_F(PackageServerTest, WhoeverHasNoAddressServesNobody) {
  const tests::TemporaryVariable none("SSH_CONNECTION", "");
  PackageServer server(secret_, 2s);
  EXPECT_EQ(server.port(), 0);
  folder_.write("file", "all");
  server.add(0, open("file"));
  server.finish();
}

}  // namespace
}  // namespace dtool::host
