// SPDX-License-Identifier: MIT
// Killfiles that were spoilt are refused, or read to a value that is written and read back the
// same; one that was cut short is never taken for a whole one.
#include <gtest/gtest.h>

#include "killfiles/killfile.h"
#include "tests/fuzz/mutate.h"

namespace dtool::fuzz {
namespace {

killfiles::Killfile sample() {
  killfiles::Killfile killfile;
  killfile.run_id = "mnist_20261121-034512-3fa91c";
  killfile.created = "2026-11-21T03:45:12Z";
  killfile.launcher = "ann@desk";
  killfile.command_line = {"dtool", "run", "mnist", "--runs_on", "gpu[1-2]", "it's \"\n"};
  killfile.what = "mnist";
  killfile.seed = 18446744073709551615U;
  killfile.listener = "10.0.0.1:29500";
  killfile.code_path = "~/code";
  killfile.on_failure = "stop";
  killfile.coordinator = "10.0.0.1:23117";
  killfile.ssh_settings = {{"Port", "22"}};
  for (int id = 0; id < 2; ++id) {
    const std::string n = std::to_string(id);
    killfile.machines.push_back({id, "gpu" + n, "dtool_x_machine" + n,
                                 killfiles::state_folder(killfile.run_id, id), "/log" + n,
                                 "~/out"});
  }
  return killfile;
}

TEST(Fuzz, KillfilesThatWereSpoiltAreRefusedOrKeepTheirValue) {
  const std::string text = killfiles::to_text(sample());
  Mutator mutator({text}, {"[[machine]]\n", "=", "\"", "'''", "\n", "#", "[", "]", "machines = 3\n",
                           "seed = -1\n", "\\u0000", "host", "~/", "/", "99999999999999999999"});
  const Tally tally = feed<std::invalid_argument>(mutator, 5'000, [](const std::string& spoilt) {
    const killfiles::Killfile read = killfiles::parse(spoilt, "file");
    EXPECT_EQ(killfiles::parse(killfiles::to_text(read), "file"), read) << spoilt;
  });
  EXPECT_GT(tally.taken, 50);
  EXPECT_GT(tally.refused, 1000);
}

TEST(Fuzz, KillfilesCutAnywhereAreRefused) {
  const std::string text = killfiles::to_text(sample());
  EXPECT_EQ(killfiles::parse(text, "file"), sample());
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_THROW(killfiles::parse(text.substr(0, size), "file"), std::invalid_argument) << size;
  }
}

TEST(Fuzz, AllenActsKillfilesAreReadOrRefused) {
  Mutator mutator({"10.0.0.1 screen_a\n10.0.0.2 screen_b\n", "gpu1 x\n"},
                  {" ", "\n", "\t", "[", "10.0.0.1", "\r", "#", "'"});
  const Tally tally = feed<std::invalid_argument>(mutator, 5'000, [](const std::string& text) {
    EXPECT_FALSE(killfiles::parse_allenact(text, "file").machines.empty()) << text;
  });
  EXPECT_GT(tally.taken, 100);
  EXPECT_GT(tally.refused, 100);
}

}  // namespace
}  // namespace dtool::fuzz
