// SPDX-License-Identifier: MIT
// What `dtool clean` deletes, and what it tells.
#include <memory>

#include "ssh/wire/tree.h"
#include "tests/unit/cli/command_test.h"

namespace dtool::cli {
namespace {

using Clean = tests::CommandTest;

ssh::HostResult keeps(std::int64_t unused_s) {
  host::KeptReply reply;
  reply.things.emplace_back();
  reply.things.back().unused_s = unused_s;
  return tests::answered(host::to_frame(reply));
}

TEST_F(Clean, AHostThatAnswersTheSecondQuestionAloneKeepsWhatItHas) {
  on_reach = [](tests::FakeRemote& hosts) {
    hosts.answers_to[0] = {{0, keeps(1'000'000)},
                           {1, tests::failed(ssh::Failure::unreachable, "away")}};
    hosts.answers_to[1] = {{0, keeps(1'000'000)}, {1, keeps(1'000'000)}};
  };
  const std::unique_ptr<Action> command = make_clean();
  EXPECT_EQ(run(*command, {"--runs_on", "h1,h2", "--delete", "--yes"}), kAllWell) << said;
  const auto may_delete = [this](std::size_t host) {
    return tests::request_of<host::KeptRequest>(fleets.front().input_of(host, 1)).deletes;
  };
  EXPECT_TRUE(may_delete(0));
  EXPECT_FALSE(may_delete(1));
}

}  // namespace
}  // namespace dtool::cli
