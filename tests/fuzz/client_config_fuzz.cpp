// SPDX-License-Identifier: MIT
// SSH client configurations of any content are read or refused with file and line, and every host
// can be resolved with what was read.
#include <gtest/gtest.h>

#include "ssh/config/client_config.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::fuzz {
namespace {

TEST(Fuzz, ClientConfigurationsAreReadAndAnswerForEveryHost) {
  Mutator mutator(
      {"Host gpu*\n  HostName %h.example.org\n  User ann\n  Port 2222\n",
       "Match host a,b !user bob\n  ProxyJump gate:22,gate2\nHost *\n  ConnectTimeout 1m30s\n",
       "IdentityFile ~/.ssh/%r-%%\nUserKnownHostsFile \"a b\" c\nIdentitiesOnly=yes\n",
       "Host gate\n  ProxyJump gpu1\nHost *\n  ProxyJump gate\n  HostKeyAlias ${HOME}\n",
       "Host !x *\n ProxyCommand nc %h %p\n# end\nInclude missing-*\n"},
      {"Host ",
       "Match ",
       "all",
       "exec \"true\"",
       "!",
       "*",
       "?",
       "\"",
       "'",
       "\\",
       "=",
       "\n",
       "%",
       "${",
       "}",
       "#",
       "none",
       "ProxyJump ",
       "Port 70000\n",
       "gpu1",
       "~",
       ",",
       "Include config\n",
       "@",
       ":"});
  const tests::TemporaryFolder folder;
  const tests::TemporaryVariable home("HOME", folder.path().string());
  std::filesystem::create_directory(folder.path() / ".ssh");
  const Tally tally = feed<std::invalid_argument>(mutator, 5'000, [&](const std::string& text) {
    const std::filesystem::path file = folder.write(".ssh/config", text);
    try {
      const auto config = ssh::ClientConfig::read(file, {});
      for (const char* host : {"gpu1", "gate", "x", "ann@b:22", "fe80::1"}) {
        const ssh::Endpoint endpoint = config.resolve(ssh::parse_host(host));
        EXPECT_NE(endpoint.port, 0) << text;
        EXPECT_LT(endpoint.jumps.size(), 10'000U) << text;
      }
    } catch (const std::invalid_argument& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(folder.path().string())) << error.what();
      throw;
    }
  });
  EXPECT_GT(tally.taken, 200);
  EXPECT_GT(tally.refused, 200);
}

}  // namespace
}  // namespace dtool::fuzz
