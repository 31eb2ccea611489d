// SPDX-License-Identifier: MIT
// --config_kwargs of any form are merged into an experiment whose text can be read, or refused.
#include <gtest/gtest.h>

#include <toml++/toml.h>

#include "cli/action.h"
#include "cli/plan/experiment.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::fuzz {
namespace {

TEST(Fuzz, ConfigKwargsMakeAnExperimentThatCanBeReadOrAreRefused) {
  const tests::TemporaryFolder folder;
  const std::string file =
      folder.write("e.toml", "seed = 1\n[train]\nepochs = 5\n[[stages]]\nsteps = 1\n").string();
  Mutator mutator(
      {R"({"train":{"epochs":3}})", R"({"a":[1,2.5,true,"x"],"b":{"c":{}}})",
       R"({"stages":[{"steps":2},{"steps":3}],"k .\"":"\n\t\\\u0001"})", R"({"seed":-1e-3})"},
      {"{",       "}",    "[",          "]",       ",",
       ":",       "\"",   "\\",         "\\u0000", "\\n",
       "\\ud800", "null", "1e400",      "-0",      "18446744073709551615",
       "\xff",    "ü",    "\"train\":", "true",    " ",
       "'"});
  const Tally tally = feed<cli::UsageError>(mutator, 5'000, [&](const std::string& text) {
    const cli::ExperimentText experiment = cli::read_experiment(file, text, 1);
    const toml::table once = toml::parse(experiment.toml);
    const std::string again = folder.write("again.toml", experiment.toml).string();
    EXPECT_EQ(toml::parse(cli::read_experiment(again, "", 1).toml), once) << text;
  });
  EXPECT_GT(tally.taken, 100);
  EXPECT_GT(tally.refused, 1000);
}

}  // namespace
}  // namespace dtool::fuzz
