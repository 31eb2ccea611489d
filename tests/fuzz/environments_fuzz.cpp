// SPDX-License-Identifier: MIT
// What a worker of environments says, spoilt: its spec is within the limits or refused, and an
// error is told on one line.
#include <gtest/gtest.h>

#include <limits>

#include "tests/fuzz/mutate.h"
#include "trainer/environments/protocol.h"
#include "trainer/settings/usage_error.h"

namespace dtool::fuzz {
namespace {

using trainer::ActionSpec;
using trainer::Observed;
using trainer::ObservedKind;

const std::vector<std::string> kSeeds = {
    R"({"protocol":1,"package":"p 1","hash":"ab","observations":[{"name":"i","kind":"pixels","shape":[3,4,5]},{"name":"n","kind":"numbers","shape":[2]}],"actions":{"choices":[2,3]}})",
    R"({"protocol":1,"observations":[{"name":"c","kind":"codes","shape":[],"codes":256}],"actions":{"low":[-1,null],"high":[1.5,1e40]}})",
    R"({"error":"no display","hint":"use xvfb-run","environment":3})"};
const std::vector<std::string> kTokens = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          "[[[[[[[[[[[[[[[[[[[[",
                                          ",",
                                          ":",
                                          "\"",
                                          "null",
                                          "true",
                                          "-1",
                                          "0",
                                          "0.5",
                                          "1e308",
                                          "-1e400",
                                          "67108864",
                                          "18446744073709551616",
                                          "\\u0000",
                                          "\\ud800",
                                          "\"codes\"",
                                          "\"pixels\"",
                                          "\"shape\"",
                                          "\"error\"",
                                          "\"environment\":"};

void expect_sound(const trainer::EnvironmentSpec& spec, const std::string& line) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  EXPECT_GE(spec.observation_bytes(), 1) << line;
  EXPECT_LE(spec.observation_bytes(), kMost) << line;
  for (const Observed& part : spec.observations) {
    EXPECT_FALSE(part.name.empty()) << line;
    EXPECT_GE(part.values(), 1) << line;
    if (part.kind != ObservedKind::codes) continue;
    EXPECT_GE(part.codes, 1) << line;
    EXPECT_LE(part.codes, 256) << line;
  }
  const ActionSpec& actions = spec.actions;
  EXPECT_GE(actions.values(), 1) << line;
  EXPECT_LE(actions.parameters(), 1 << 16) << line;
  for (const std::int64_t each : actions.choices) EXPECT_GE(each, 1) << line;
  for (std::size_t i = 0; i < actions.low.size(); ++i) {
    EXPECT_LT(actions.low[i], actions.high[i]) << line;
  }
  const trainer::WorkerLayout layout = trainer::layout_of(spec, 1000);
  EXPECT_GT(layout.size, 0) << line;
}

TEST(EnvironmentsFuzz, ASpecIsWithinTheLimitsOrRefused) {
  trainer::WorkerSettings settings;
  settings.name = "fuzz";
  Mutator mutator(kSeeds, kTokens);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < rounds(20'000); ++i) {
    const std::string line = mutator.next();
    try {
      expect_sound(trainer::read_answer(settings, line).spec, line);
      ++read;
    } catch (const trainer::UsageError& mistake) {
      EXPECT_EQ(std::string(mistake.what()).find('\n'), std::string::npos) << line;
      ++refused;
    }
    const trainer::WorkerFailed error = trainer::read_error(line);
    EXPECT_EQ(std::string(error.what()).find_first_of("\n\x1b"), std::string::npos) << line;
    EXPECT_GE(error.environment, -1) << line;
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace dtool::fuzz
