// SPDX-License-Identifier: MIT
// The table of a run's fields: what each form of a run takes from it.
#include "killfiles/run.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "killfiles/killfile.h"
#include "tests/unit/fault.h"
#include "tests/unit/full_run.h"

namespace dtool::killfiles {
namespace {

using tests::full_run;

/// The names of those that people are shown of a run.
std::vector<std::string> shown(const Run& run) {
  std::vector<std::string> names;
  for (const Told& each : tell_unusual(run)) names.emplace_back(each.row.shown);
  return names;
}

/// The complaint about a run that a file tells; or empty.
std::string complaint(const Run& run) {
  return tests::fault_of([&run] {
    refuse_faults(run, [](const char* name, const std::string& fault) {
      throw std::invalid_argument(std::string(name) + ": " + fault);
    });
  });
}

TEST(RunTable, NoTwoFieldsShareANameAKeyOrAFlag) {
  std::set<std::string> names;
  std::set<std::string> keys;
  std::set<std::string> shown;
  for (const Told& each : tell(killfiles::Run())) {
    EXPECT_TRUE(names.insert(each.row.name).second) << each.row.name;
    if (*each.row.key != '\0') {
      EXPECT_TRUE(keys.insert(each.row.key).second) << each.row.key;
    }
    if (*each.row.shown != '\0') {
      EXPECT_TRUE(shown.insert(each.row.shown).second) << each.row.shown;
    }
  }
  for (const std::string& each : keys) EXPECT_FALSE(names.contains(each)) << each;
}

TEST(RunTable, OfARunThatWasAskedForNothingPeopleAreShownNothing) {
  EXPECT_EQ(shown(killfiles::Run()), std::vector<std::string>());
  killfiles::Run usual;
  usual.lost_after = 60;
  usual.output_dir = "experiment_output";
  EXPECT_EQ(shown(usual), std::vector<std::string>());
}

TEST(RunTable, EachFieldThatIsShownIsShownWithItsValue) {
  killfiles::Run run;
  run.seed = 0;
  run.chain = {"a", "b"};
  run.lost_after = 61;
  run.nice = 0;
  std::vector<std::string> texts;
  for (const Told& each : tell_unusual(run)) texts.push_back(each.row.shown + ("=" + each.text));
  EXPECT_EQ(texts, (std::vector<std::string>{"resumes=a b", "seed=0", "lost_after=61", "nice=0"}));
}

TEST(RunTable, AKillfileGivesBackWhatItKeepsAndNothingElse) {
  Killfile killfile;
  static_cast<killfiles::Run&>(killfile) = full_run();
  const Killfile read = parse(to_text(killfile), "f");
  std::vector<Told> before = tell(killfile);
  const std::vector<Told> after = tell(read);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool is_kept = before[i].row.in_killfile != Kept::no;
    EXPECT_EQ(after[i].text, is_kept ? before[i].text : tell(killfiles::Run())[i].text)
        << after[i].row.name;
  }
}

TEST(RunTable, OlderDtoolsReadEachKillfile) {
  std::set<std::string> keys;
  for (const Told& each : tell(killfiles::Run())) {
    if (each.row.in_killfile != Kept::no) keys.insert(each.row.name);
  }
  EXPECT_EQ(keys, (std::set<std::string>{"run_id", "created", "launcher", "command_line", "chain",
                                         "rerun_of", "what", "engine", "seed",
                                         "distributed_ip_and_port", "on_failure", "max_restarts"}))
      << "they refuse a key that they do not know";
}

TEST(RunTable, AValueThatNoRunHasIsRefusedByItsName) {
  EXPECT_EQ(complaint(full_run()), "");
  const auto with = [](auto change) {
    killfiles::Run run = full_run();
    change(run);
    return complaint(run);
  };
  EXPECT_EQ(with([](killfiles::Run& run) { run.run_id = "../x"; }), "run_id: '../x' is no run id");
  EXPECT_EQ(with([](killfiles::Run& run) { run.chain.emplace_back("a/b"); }),
            "chain: 'a/b' is no run id");
  EXPECT_EQ(with([](killfiles::Run& run) { run.rerun_of = " "; }), "rerun_of: ' ' is no run id");
  EXPECT_EQ(with([](killfiles::Run& run) { run.created = "today"; }),
            "created: 'today' is no time such as 2026-11-21T03:45:12Z");
  EXPECT_EQ(with([](killfiles::Run& run) { run.on_failure = "wait"; }),
            "on_failure: 'wait' is neither 'stop' nor 'leave'");
  EXPECT_EQ(with([](killfiles::Run& run) { run.max_restarts = -1; }),
            "max_restarts: -1 is not from 0 to 2147483647");
  EXPECT_EQ(with([](killfiles::Run& run) { run.nice = 20; }), "nice: 20 is not from 0 to 19");
  EXPECT_EQ(with([](killfiles::Run& run) { run.lost_after = 0; }),
            "lost_after: 0 is not from 1 to 86400");
}

}  // namespace
}  // namespace dtool::killfiles
