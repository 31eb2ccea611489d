// SPDX-License-Identifier: MIT
// Failed hosts are told once each, like failures together.
#include "cli/host_output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

using ssh::Failure;
using tests::answered;
using tests::failed;
using tests::FakeRemote;
using tests::from;
using Results = std::vector<ssh::HostResult>;

std::string report(const Results& results) {
  Console console;
  testing::internal::CaptureStderr();
  report_failures(console, results, "uptime");
  return testing::internal::GetCapturedStderr();
}

TEST(Failures, AreNotMentionedWhereThereAreNone) {
  EXPECT_EQ(report({from("h1", answered("")), from("h2", answered("x"))}), "");
  EXPECT_EQ(report({}), "");
}

TEST(Failures, ManyScatteredHostsAreCountedWhereALineIsToStayShort) {
  std::vector<ssh::Host> hosts;
  for (int i = 0; i < 1000; i += 2) hosts.push_back(ssh::parse_host("gpu" + std::to_string(i)));
  const std::string text = fold_hosts_in_short(hosts);
  EXPECT_TRUE(text.starts_with("gpu[0,2,4,")) << text;
  EXPECT_TRUE(text.ends_with(",… (500 hosts)")) << text;
  EXPECT_LT(text.size(), 200U);
  hosts.resize(3);
  EXPECT_EQ(fold_hosts_in_short(hosts), "gpu[0,2,4]");
}

TEST(Failures, OfTheSameKindStandOnceUnderTheirHosts) {
  Results results;
  for (const char* host : {"gpu01", "gpu02", "gpu04"}) {
    results.push_back(from(host, failed(Failure::unreachable, "connection refused")));
  }
  results.push_back(from("gpu03", answered("", 3)));
  results.push_back(from("gpu05", answered("")));
  EXPECT_EQ(report(results),
            "dtool: 4 of 5 hosts failed: uptime\n"
            "  gpu[01-02,04]: connection refused\n"
            "  gpu03: exit code 3\n");
}

TEST(Failures, ThatNameTheirOwnHostsAreLikeOnes) {
  Results results;
  for (const char* host : {"h01", "ann@h02", "h03"}) {
    const std::string name = ssh::parse_host(host).name;
    results.push_back(from(host, failed(Failure::unreachable, "no " + name + ": see h01.log")));
  }
  EXPECT_EQ(report({results[1]}), "dtool: failed: uptime\n  ann@h02: no h02: see h01.log\n");
  EXPECT_EQ(report(results),
            "dtool: 3 of 3 hosts failed: uptime\n"
            "  h[01,03],ann@h02: no h[01-03]: see h01.log\n");
}

TEST(Failures, WithOtherHintsAreOtherFailures) {
  const std::string told = report({from("a", failed(Failure::unreachable, "refused", "look here")),
                                   from("b", failed(Failure::unreachable, "refused", "or there")),
                                   from("c", failed(Failure::unreachable, "refused"))});
  EXPECT_EQ(told,
            "dtool: 3 of 3 hosts failed: uptime\n"
            "  a: refused\n    hint: look here\n"
            "  b: refused\n    hint: or there\n"
            "  c: refused\n");
}

TEST(Failures, HintsNameAllHostsThatShareThem) {
  const auto unknown =
      failed(Failure::host_key_unknown, "unknown key", "dtool trust --runs_on {hosts}");
  EXPECT_EQ(report({from("h1", unknown), from("ann@h2:2222", unknown), from("h3", unknown)}),
            "dtool: 3 of 3 hosts failed: uptime\n"
            "  h[1,3],ann@h2:2222: unknown key\n"
            "    hint: dtool trust --runs_on 'h[1,3],ann@h2:2222'\n");
}

TEST(Failures, ThoseThatWereEndedForAnotherAreListedAndNotCounted) {
  ssh::HostResult ended = answered("", 143);
  ended.error = "its processes were ended because the run failed";
  ended.was_ended = true;
  EXPECT_EQ(report({from("h1", ended), from("h2", answered("", 7)), from("h3", ended)}),
            "dtool: 1 of 3 hosts failed: uptime\n"
            "  h[1,3]: its processes were ended because the run failed\n"
            "  h2: exit code 7\n");
}

TEST(Failures, AreCounted) {
  Console console;
  testing::internal::CaptureStderr();
  const Results results = {from("a", answered("", 1)), from("b", answered("", 0)),
                           from("c", failed(Failure::timed_out, "too late"))};
  EXPECT_EQ(report_failures(console, results, "x"), 2U);
  testing::internal::GetCapturedStderr();
}

TEST(Describe, NamesTheSignalThatAnExitCodeStandsFor) {
  EXPECT_EQ(describe(answered("", 1)), "exit code 1");
  EXPECT_EQ(describe(answered("", 127)), "exit code 127");
  EXPECT_EQ(describe(answered("", 137)), "exit code 137 (signal 9)");
  EXPECT_EQ(describe(answered("", 255)), "exit code 255");
  EXPECT_EQ(describe(failed(Failure::unreachable, "refused")), "refused");
}

TEST(ToJson, HasWhatIsThere) {
  ssh::HostResult result = from("ann@h1", answered("", 3));
  result.elapsed = std::chrono::milliseconds(1500);
  EXPECT_EQ(
      to_json(result),
      nlohmann::json::parse(R"({"host":"ann@h1","exit_code":3,"failure":"none","elapsed_s":1.5})"));
}

TEST(ToJson, OfAHostThatDidNotAnswerSaysWhy) {
  const auto json = to_json(from("h1", failed(Failure::host_key_unknown, "who?", "trust {hosts}")));
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_EQ(json["failure"], "host_key_unknown");
  EXPECT_EQ(json["error"], "who?");
  EXPECT_EQ(json["hint"], "trust h1");
}

TEST(ExitCode, TellsInterruptedBeforeFailedBeforeWell) {
  FakeRemote remote("h[1-2]");
  const Results well = {answered(""), answered("")};
  const Results mixed = {answered(""), answered("", 1)};
  EXPECT_EQ(exit_code_of(well, remote), kAllWell);
  EXPECT_EQ(exit_code_of(mixed, remote), kSomeFailed);
  remote.is_interrupted = true;
  EXPECT_EQ(exit_code_of(well, remote), kInterrupted);
  EXPECT_EQ(exit_code_of(mixed, remote), kInterrupted);
}

}  // namespace
}  // namespace dtool::cli
