// SPDX-License-Identifier: MIT
// `dtool exec`: what it asks the hosts of a run, and what it tells.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ssh/wire/run.h"
#include "tests/unit/cli/command_test.h"

namespace dtool::cli {
namespace {

struct ExecBesideARun : tests::CommandTest {
  ExecBesideARun() {
    record("train_20261121-034512-3fa91c", {"h1", "h2", "h3"});
    program = {"echo", "a b"};
    on_reach = [](tests::FakeRemote& remote) {
      for (std::size_t i = 0; i < 3; ++i)
        remote.answers_to[0][i] = tests::answered(host::to_frame(host::StatusReply{}));
      remote.answers_to[1] = {};
    };
  }

  int exec(const std::vector<std::string>& words) {
    const std::unique_ptr<Action> action = make_exec();
    return run(*action, words);
  }
};

TEST_F(ExecBesideARun, VisitsTheStateFolderOfEachMachine) {
  ASSERT_EQ(exec({"last"}), kAllWell) << said;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string end =
        fmt::format(" visit '~/.dtool/runs/train_20261121-034512-3fa91c/machine{}' echo 'a b'", i);
    EXPECT_TRUE(fleets.back().line_of(i, 1).ends_with(end)) << fleets.back().line_of(i, 1);
  }
}

TEST_F(ExecBesideARun, SaysWhatRunsOnAHost) {
  for (const std::string host : {"h1", "@lab"}) {
    EXPECT_EQ(exec({host}), kNotDone);
    EXPECT_TRUE(said.ends_with("; on hosts: dtool command -w " + host + " -- PROGRAM")) << said;
  }
}

TEST_F(ExecBesideARun, WithFailFastAHostThatIsNotReadyEndsTheOthers) {
  const auto usual = on_reach;
  on_reach = [&usual](tests::FakeRemote& remote) {
    usual(remote);
    remote.answers_to[0][1] = tests::from("h2", tests::failed(ssh::Failure::unreachable, "no"));
  };
  EXPECT_EQ(exec({"last", "--fail_fast"}), kSomeFailed);
  EXPECT_EQ(fleets.back().asked_options.back().failed, ssh::parse_host("h2"));
}

TEST_F(ExecBesideARun, TakesTheMachinesThatAreNamed) {
  ASSERT_EQ(exec({"train", "-m", "2"}), kAllWell) << said;
  ASSERT_EQ(fleets.back().names.size(), 1U);
  EXPECT_EQ(fleets.back().names.front().name, "h3");
  EXPECT_NE(fleets.back().line_of(0, 1).find("/machine2' "), std::string::npos);
}

TEST_F(ExecBesideARun, RunsNothingOnAHostThatDoesNotAnswerAndTheRestOnTheOthers) {
  is_json = true;
  const auto usual = on_reach;
  on_reach = [&usual](tests::FakeRemote& remote) {
    usual(remote);
    remote.answers_to[0][1] = tests::failed(ssh::Failure::unreachable, "no route");
    remote.answers_to[1][2] = tests::answered("said", 3);
  };
  EXPECT_EQ(exec({"last"}), kSomeFailed);
  EXPECT_EQ(fleets.back().line_of(1, 1), "");
  EXPECT_NE(fleets.back().line_of(2, 1), "");
  const auto told = nlohmann::json::parse(out);
  ASSERT_EQ(told["hosts"].size(), 3U);
  EXPECT_EQ(told["hosts"][1]["failure"], "unreachable");
  EXPECT_EQ(told["hosts"][1]["machine"], 1);
  EXPECT_EQ(told["hosts"][2]["exit_code"], 3);
  EXPECT_EQ(told["hosts"][2]["stdout"], "said");
}

TEST_F(ExecBesideARun, RefusesWhereNoCommandCanBeRun) {
  killfiles::Killfile run = record("queued_20261122-034512-3fa91c", {"h1"});
  run.engine = "slurm";
  run.job = "17";
  write(run);
  EXPECT_EQ(exec({"queued"}), kNotDone);
  EXPECT_EQ(said,
            "queued_20261122-034512-3fa91c runs on nodes that slurm chose, and dtool reaches h1 "
            "alone\nhint: there, srun --jobid 17 --overlap --pty bash is on its node");
  EXPECT_EQ(exec({"train", "-m", "h7"}), kNotDone);
  EXPECT_NE(said.find("has no machine h7"), std::string::npos);
  program = {};
  EXPECT_EQ(exec({"train"}), kNotDone);
  EXPECT_NE(said.find("no program was named"), std::string::npos);
  EXPECT_TRUE(fleets.empty());
}

}  // namespace
}  // namespace dtool::cli
