// SPDX-License-Identifier: MIT
// What hosts are asked to run, for the words that stand after `--`.
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/cli/command_test.h"

namespace dtool::cli {
namespace {

struct CommandAfterDashes : tests::CommandTest {
  /// The command line that the hosts get.
  std::string line_of(const std::vector<std::string>& words,
                      const std::vector<std::string>& flags = {}) {
    program = words;
    std::vector<std::string> all = {"-w", "h1,h2"};
    all.insert(all.end(), flags.begin(), flags.end());
    const std::unique_ptr<Action> command = make_command();
    return run(*command, all) == kAllWell ? fleets.back().line_of(1) : said;
  }
};

TEST_F(CommandAfterDashes, OneWordIsACommandLine) {
  EXPECT_EQ(line_of({"df -h ~ | tail -n 1"}), "df -h ~ | tail -n 1");
}

TEST_F(CommandAfterDashes, SeveralWordsAreAProgramAndItsWordsUnchanged) {
  EXPECT_EQ(line_of({"uptime", "-p"}), "uptime -p");
  EXPECT_EQ(line_of({"echo", "$HOME", "a b", ""}), "echo '$HOME' 'a b' ''");
}

TEST_F(CommandAfterDashes, ShellJoinsTheWordsAsSshDoes) {
  EXPECT_EQ(line_of({"echo", "$HOME", "a b"}, {"--shell"}), "echo $HOME a b");
}

TEST_F(CommandAfterDashes, MustSayWhatToRunOnce) {
  EXPECT_EQ(line_of({"uptime"}, {"--command", "true"}),
            "--command and the words after -- both say what to run\nhint: give one of them");
  EXPECT_EQ(line_of({}, {"--shell"}), "--shell joins the words after --, and there are none");
  EXPECT_EQ(line_of({""}), "the command after -- is empty");
}

struct CommandExitCode : tests::CommandTest {
  /// dtool's, where the hosts answer so.
  int code(const std::vector<std::string>& flags, tests::FakeRemote::Answers answers) {
    on_reach = [answers](tests::FakeRemote& remote) { remote.answers = answers; };
    std::vector<std::string> all = {"-w", "h1,h2", "--command", "true"};
    all.insert(all.end(), flags.begin(), flags.end());
    const std::unique_ptr<Action> command = make_command();
    return run(*command, all);
  }
  static ssh::HostResult exits(int code) { return tests::answered("", code); }
};

TEST_F(CommandExitCode, IsOneUnlessItIsPassedOn) {
  EXPECT_EQ(code({}, {{0, exits(3)}, {1, exits(3)}}), kSomeFailed);
}

TEST_F(CommandExitCode, IsThatOfAllHostsOrOne) {
  const std::vector<std::string> flags = {"--exit_code", "remote"};
  EXPECT_EQ(code(flags, {{0, exits(3)}, {1, exits(3)}}), 3);
  EXPECT_EQ(code(flags, {{0, exits(3)}, {1, exits(4)}}), kSomeFailed);
  EXPECT_EQ(code(flags, {}), 0);
}

TEST_F(CommandExitCode, IsTheLargestAndWithoutAnAnswer255) {
  const std::vector<std::string> flags = {"--exit_code", "max"};
  EXPECT_EQ(code(flags, {{0, exits(3)}, {1, exits(2)}}), 3);
  EXPECT_EQ(code(flags, {{1, exits(130)}}), 130);
  EXPECT_EQ(code(flags, {{0, tests::failed(ssh::Failure::unreachable, "")}, {1, exits(2)}}), 255);
}

TEST_F(CommandExitCode, OfOneThatWasEndedForAnothersFailureDoesNotCount) {
  ssh::HostResult ended = tests::failed(ssh::Failure::ended, "ended because h1 failed");
  ended.was_ended = true;
  EXPECT_EQ(code({"--exit_code", "remote"}, {{0, exits(7)}, {1, ended}}), 7);
}

TEST_F(CommandExitCode, IsOneWhereEveryHostWasEnded) {
  ssh::HostResult ended = tests::failed(ssh::Failure::ended, "ended");
  ended.was_ended = true;
  EXPECT_EQ(code({"--exit_code", "max"}, {{0, ended}, {1, ended}}), kSomeFailed);
}

TEST_F(CommandExitCode, IsPassedOnInTheDocument) {
  is_json = true;
  EXPECT_EQ(code({"--exit_code", "max"}, {{1, exits(9)}}), 9);
  EXPECT_NE(out.find("\"exit_code\": 9"), out.npos) << out;
}

}  // namespace
}  // namespace dtool::cli
