// SPDX-License-Identifier: MIT
// What CLI11 complains of is told in dtool's words, however long the value is and whatever it
// holds.
#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/action.h"
#include "cli/options.h"

namespace dtool::cli {
namespace {

/// What is said of `flag` with that value; its hint left out.
std::string said_of(const std::string& flag, const std::string& value) {
  CLI::App app("", "dtool");
  Options command(app);
  int machine = 0;
  double grace = 0;
  std::string color;
  command.add_whole_number("--machine", machine, "");
  command.add_option("--grace", grace, "").check(must_be_from(0, 3600));
  command.add_option("--color", color, "").one_of({"auto", "always"});
  try {
    app.parse(std::vector<std::string>{value, flag});  // the last word first
  } catch (const CLI::ParseError& error) {
    const std::string text = explain(app, error, {}).what();
    return text.substr(0, text.find("\nhint: "));
  }
  return "";
}

TEST(CommandLine, AValueThatCannotBeIsNamedWithWhatCouldBe) {
  EXPECT_EQ(said_of("--machine", "x"), "--machine: 'x' is not a whole number from 0 to 2147483647");
  EXPECT_EQ(said_of("--grace", "-1"), "--grace: '-1' is not a number from 0 to 3600");
  EXPECT_EQ(said_of("--color", "blue"), "--color: 'blue' is not one of auto, always");
}

TEST(CommandLine, AValueWithAWrongLetterGetsTheNearestOne) {
  CLI::App app("", "dtool");
  Options command(app);
  std::string launcher;
  command.add_option("--launcher", launcher, "").one_of({"ssh", "slurm"});
  try {
    app.parse(std::vector<std::string>{"slrum", "--launcher"});
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_STREQ(explain(app, error, {}).what(),
                 "--launcher: 'slrum' is not one of ssh, slurm\nhint: did you mean slurm? dtool "
                 "--help all lists all flags and their values");
  }
}

TEST(CommandLine, AValueMayBeLong) {
  const std::string many(200'000, 'x');
  EXPECT_EQ(said_of("--machine", many),
            "--machine: '" + many + "' is not a whole number from 0 to 2147483647");
  EXPECT_EQ(said_of("--color", many), "--color: '" + many + "' is not one of auto, always");
}

TEST(CommandLine, AValueMayHoldTheWordsOfAComplaint) {
  for (const std::string value : {"Value 1 not in range a to b", "Value  not in range ",
                                  "a not in {b}", ": Value x", " = "}) {
    EXPECT_EQ(said_of("--color", value), "--color: '" + value + "' is not one of auto, always");
    EXPECT_EQ(said_of("--machine", value),
              "--machine: '" + value + "' is not a whole number from 0 to 2147483647");
  }
}

/// What is said of these words after `dtool run`, with the hint.
std::string said_of_run(std::vector<std::string> words) {
  CLI::App app("", "dtool");
  CLI::App* run = app.add_subcommand("run", "");
  Options command(*run);
  std::string hosts, file, np, nodes;
  command.add_option("-w,--runs_on", hosts, "");
  command.add_option("--hostfile", file, "");
  command.add_option("--np", np, "");
  command.add_option("--nodes", nodes, "");
  words.insert(words.begin(), {"dtool", "run"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  try {
    const Words read = read_words(app, static_cast<int>(argv.size()), argv.data());
    app.parse(std::vector<std::string>(read.own.rbegin(), read.own.rend()));
  } catch (const CLI::ParseError& error) {
    return explain(app, error, {}).what();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

/// The flag that a name of the command stands for.
std::string meaning_in(std::unique_ptr<Action> (*make)(), const std::string& name) {
  CLI::App app;
  Options command(app);
  const std::unique_ptr<Action> action = make();
  action->add_options(command);
  const auto option = command.find(name);
  return option ? option->name() : "";
}

TEST(CommandLine, ShortFlagsMeanTheLongOnes) {
  for (const auto make : {make_run, make_rerun, make_command, make_check}) {
    for (const char* name : {"-w", "-H", "--hosts"})
      EXPECT_EQ(meaning_in(make, name), "--runs_on") << name;
    EXPECT_EQ(meaning_in(make, "-x"), "--exclude_hosts");
  }
  for (const auto make : {make_run, make_rerun}) {
    EXPECT_EQ(meaning_in(make, "-n"), "--nproc_per_node");
    EXPECT_EQ(meaning_in(make, "-f"), "--follow");
    EXPECT_EQ(meaning_in(make, "-s"), "--seed");
  }
  for (const auto make :
       {make_attach, make_exec, make_fetch, make_forward, make_logs, make_ssh, make_tensorboard})
    EXPECT_EQ(meaning_in(make, "-m"), "--machine");
  EXPECT_EQ(meaning_in(make_logs, "-n"), "--tail");
  EXPECT_EQ(meaning_in(make_logs, "-f"), "--follow");
  EXPECT_EQ(meaning_in(make_logs, "-x"), "");
  EXPECT_EQ(meaning_in(make_command, "-b"), "--fold");
}

TEST(CommandLine, FlagsAsOtherLaunchersHaveThemGetTheirOwnHint) {
  EXPECT_EQ(said_of_run({"-hostfile", "f"}),
            "-hostfile is not a flag of dtool run\nhint: did you mean --hostfile?");
  EXPECT_EQ(said_of_run({"-wait"}),
            "-wait is not a flag of dtool run\nhint: a flag of one letter stands alone: -w ait");
  EXPECT_EQ(said_of_run({"-w7"}), "");
  EXPECT_EQ(said_of_run({"-np", "2"}), "-np is not a flag of dtool run\nhint: did you mean --np?");
  EXPECT_EQ(said_of_run({"--nnodes", "2"}),
            "--nnodes is not a flag of dtool run\nhint: the hosts decide how many machines there "
            "are: --runs_on");
  EXPECT_EQ(said_of_run({"--hostfile", "-np"}), "");
}

}  // namespace
}  // namespace dtool::cli
