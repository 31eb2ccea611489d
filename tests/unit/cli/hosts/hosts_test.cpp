// SPDX-License-Identifier: MIT
// What `dtool hosts` prints.
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/cli/command_test.h"

namespace dtool::cli {
namespace {

struct HostsCommand : tests::CommandTest {
  std::string printed(const std::vector<std::string>& words) {
    out.clear();
    const std::unique_ptr<Action> command = make_hosts();
    const int code = run(*command, words);
    return code == kAllWell ? out : "exit code " + std::to_string(code) + ": " + said;
  }
};

TEST_F(HostsCommand, PrintsThemOneALineInTheirOrder) {
  EXPECT_EQ(printed({"gpu[1-4]!gpu3"}), "gpu1\ngpu2\ngpu4\n");
  EXPECT_EQ(printed({"b", "a,b"}), "b\na\n");
}

TEST_F(HostsCommand, FoldsAndCountsThem) {
  EXPECT_EQ(printed({"--fold", "gpu[01-04],gpu04!gpu03"}), "gpu[01-02,04]\n");
  EXPECT_EQ(printed({"--count", "gpu[01-04],gpu04!gpu03"}), "3\n");
  EXPECT_EQ(printed({"-c", "a!a"}), "0\n");
  EXPECT_NE(printed({"--fold", "--count", "a"}).find("exit code 2: "), std::string::npos);
}

TEST_F(HostsCommand, PicksSomeByChance) {
  std::set<std::string> seen;
  for (int round = 0; round < 20; ++round) seen.insert(printed({"--pick", "1", "n[1-90]"}));
  EXPECT_GT(seen.size(), 3U);
  EXPECT_EQ(printed({"--pick", "3", "n[1-3]"}), "n1\nn2\nn3\n");
  EXPECT_EQ(printed({"--pick", "4", "n[1-3]"}),
            "exit code 2: --pick 4: there are 3 hosts to pick from");
}

TEST_F(HostsCommand, TellsWhereThereAreNone) {
  EXPECT_EQ(printed({"a!a"}), "");
  EXPECT_EQ(said, "'a!a' leaves no host\n");
  EXPECT_EQ(printed({}),
            "exit code 2: no hosts were named\nhint: dtool hosts 'gpu[1-8]!gpu3' prints seven");
  EXPECT_EQ(printed({"a!b c"}),
            "exit code 2: 'b c' is not a host: a host name does not hold ' '\n"
            "hint: hosts are joined by commas");
}

TEST_F(HostsCommand, HasADocument) {
  is_json = true;
  EXPECT_EQ(nlohmann::json::parse(printed({"n[1-3]!n2,ann@x:22"})),
            nlohmann::json({{"hosts", {"n1", "n3", "ann@x:22"}},
                            {"count", 3},
                            {"folded", "n[1,3],ann@x:22"},
                            {"exit_code", 0}}));
}

}  // namespace
}  // namespace dtool::cli
