// SPDX-License-Identifier: MIT
// What strangers say to a host that passes a package on: who does not know the secret is told
// nothing, and nobody keeps it from the others.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "killfiles/channel/channel.h"
#include "ssh/host/tree/package_server.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/stranger.h"
#include "tests/unit/temporary_folder.h"

namespace dtool {
namespace {

const std::string kSecret = "0123456789abcdef0123456789abcdef";

/// What comes until it is hung up on.
std::string say(std::uint16_t port, const std::string& bytes) {
  const fuzz::Stranger stranger(port);
  EXPECT_TRUE(stranger.is_there());
  stranger.say(bytes);
  stranger.say_no_more();
  const auto heard = stranger.hear_all();
  EXPECT_TRUE(heard) << "neither answered nor hung up on";
  return heard.value_or("");
}

TEST(ListenersFuzz, APackageIsHandedToNobodyElse) {
  std::mt19937 random(fuzz::seed());
  const tests::TemporaryFolder folder;
  std::string package;
  for (int i = 0; i < 100'000; ++i) package += static_cast<char>(random());
  const tests::TemporaryVariable connection("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22");
  host::PackageServer server(kSecret, std::chrono::minutes(10));
  server.add(0, host::Descriptor(::open(folder.write("package", package).c_str(), O_RDONLY)));
  ASSERT_NE(server.port(), 0);
  const std::string hello = host::make_hello(kSecret, 0);
  const std::string strangers = host::make_hello(std::string(32, '0'), 0);
  fuzz::Mutator hellos({hello, strangers, hello.substr(0, 40), "GET / HTTP/1.0\r\n\r\n"},
                       {"dtool 1\n", "\n", std::string(1, '\0'), "\xff", std::string(64, '0'),
                        hello, strangers, std::string(4096, 'x')});
  int refused = 0;
  for (int i = 0; i < fuzz::rounds(300); ++i) {
    const std::string said = hellos.next();
    if (said != hello) {
      ++refused;
      EXPECT_EQ(say(server.port(), said), "");
    }
    if (i % 50 != 0) continue;
    const fuzz::Stranger host(server.port());
    host.say(hello);
    const auto welcome = host.hear_all(host::kWelcomeSize);
    EXPECT_TRUE(welcome && host::is_welcome(kSecret, hello, *welcome)) << i;
    EXPECT_TRUE(host.hear_all(package.size()) == package) << i;  // not shown: it is long
  }
  EXPECT_GT(refused, 100);
  server.finish();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (fuzz::Stranger(server.port()).is_there())
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nobody needs it any more";
}

}  // namespace
}  // namespace dtool
