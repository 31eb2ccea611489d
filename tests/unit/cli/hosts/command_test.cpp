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

}  // namespace
}  // namespace dtool::cli
