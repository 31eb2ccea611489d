// SPDX-License-Identifier: MIT
#include "cli/shell/completion.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/command_line.h"

namespace dtool::cli {
namespace {

using Words = std::vector<std::string>;

/// A command line like dtool's, small.
struct Completing : testing::Test {
  Completing() {
    app.name("dtool");
    app.formatter(make_help_formatter(takes_program, shows_all));
    CLI::App* run = app.add_subcommand("run", "start a run");
    run->add_option("EXPERIMENT", text, "an experiment");
    run->add_option("--runs_on", text, "hosts")->type_name("HOSTS");
    run->add_option("-s,--seed", text, "the seed");
    run->add_option("--export", words, "a variable")->allow_extra_args(false);
    run->add_flag("--follow", flag, "shows -- and waits");
    CLI::App* kill = app.add_subcommand("kill", "end runs");
    kill->add_option("RUN", words, "runs");
    kill->add_option("--color", text, "when")
        ->check(CLI::IsMember({"auto", "never"}))
        ->type_name("WHEN");
    kill->add_option("--machine", text, "machines");
    kill->add_option("--list", text, "a list")->type_name("FILE");
    live.runs = [] { return std::vector<Candidate>{{"digits_2", "new"}, {"digits_1", "old"}}; };
    live.hosts = [] { return std::vector<Candidate>{{"@lab", "h[1-3]"}, {"local", ""}}; };
    live.experiments = [] { return std::vector<Candidate>{{"digits", ""}}; };
    live.machines = [](const std::string& run_id) {
      return std::vector<Candidate>{{"0", run_id}, {"1", run_id}};
    };
  }

  Words words_for(const Words& typed) const {
    Words found;
    const Completion completion = complete(app, typed, live);
    for (const Candidate& each : completion.candidates) found.push_back(each.word);
    if (completion.files == Files::yes) found.emplace_back(":files");
    return found;
  }

  TakesPrograms takes_program;
  CLI::App app{"dtool: does things"};
  std::string text;
  Words words;
  bool flag = false;
  bool shows_all = false;
  LiveValues live;
};

TEST_F(Completing, begins_with_the_commands) {
  EXPECT_EQ(words_for({""}), (Words{"run", "kill"}));
  EXPECT_EQ(words_for({}), (Words{"run", "kill"}));
  EXPECT_EQ(words_for({"k"}), (Words{"kill"}));
  EXPECT_EQ(words_for({"help", "k"}), (Words{"kill"}));
}

TEST_F(Completing, flags_are_those_of_the_command_and_not_given_yet) {
  EXPECT_EQ(words_for({"run", "--s"}), (Words{"--seed"}));
  EXPECT_EQ(words_for({"run", "-s", "7", "--s"}), Words{});
  EXPECT_EQ(words_for({"run", "--export", "A", "--e"}), (Words{"--export"}));
  EXPECT_EQ(words_for({"kill", "--runs"}), Words{});
}

TEST_F(Completing, a_flag_goes_on_in_the_spelling_it_was_begun_in) {
  EXPECT_EQ(words_for({"run", "--runs"}), (Words{"--runs_on"}));
  EXPECT_EQ(words_for({"run", "--runs-"}), (Words{"--runs-on"}));
  EXPECT_EQ(words_for({"run", "--runs-on", "@"}), (Words{"@lab"}));
}

TEST_F(Completing, values_are_looked_up) {
  EXPECT_EQ(words_for({"kill", ""}), (Words{"digits_2", "digits_1"}));
  EXPECT_EQ(words_for({"kill", "digits_2", "d"}), (Words{"digits_1"}));
  EXPECT_EQ(words_for({"run", "--runs_on", ""}), (Words{"@lab", "local"}));
  EXPECT_EQ(words_for({"run", "--runs_on", "gpu01,l"}), (Words{"gpu01,local"}));
  EXPECT_EQ(words_for({"run", "--runs_on=gpu01,@"}), (Words{"--runs_on=gpu01,@lab"}));
  EXPECT_EQ(words_for({"kill", "--color", ""}), (Words{"auto", "never"}));
  EXPECT_EQ(words_for({"kill", "--color=n"}), (Words{"--color=never"}));
  EXPECT_EQ(words_for({"run", ""}), (Words{"digits", ":files"}));
  EXPECT_EQ(words_for({"kill", "--list", ""}), (Words{":files"}));
  EXPECT_EQ(words_for({"run", "--seed", ""}), Words{});
}

TEST_F(Completing, machines_are_those_of_the_run_that_was_named) {
  const Completion completion = complete(app, {"kill", "digits_1", "--machine", ""}, live);
  EXPECT_EQ(completion.candidates, (std::vector<Candidate>{{"0", "digits_1"}, {"1", "digits_1"}}));
}

TEST_F(Completing, after_two_dashes_there_are_files) {
  EXPECT_EQ(words_for({"run", "--", "pyth"}), (Words{":files"}));
}

TEST_F(Completing, nothing_is_looked_up_before_it_is_asked_for) {
  live.runs = []() -> std::vector<Candidate> { throw std::runtime_error("looked up"); };
  EXPECT_EQ(words_for({"run", "--f"}), (Words{"--follow"}));
}

TEST_F(Completing, answers_stay_one_line_each) {
  EXPECT_EQ(to_lines({{{"a", "one\nline \x1b[31mred"}, {"b", ""}, {"c\nd", ""}, {"\x1b]0;x\a", ""}},
                      Files::yes}),
            "a\tone line red\nb\n:files\n");
}

using ManPage = Completing;

TEST_F(ManPage, has_what_help_has) {
  const std::string page = man_page(*app.get_subcommand("run"), "2026-11-21");
  EXPECT_NE(page.find(".TH DTOOL\\-RUN 1 2026-11-21 \"dtool"), page.npos) << page;
  EXPECT_NE(page.find("\n.SH NAME\ndtool\\-run \\- start a run\n"), page.npos) << page;
  EXPECT_NE(page.find(".B \\-\\-runs_on HOSTS\nhosts\n"), page.npos) << page;
  EXPECT_NE(page.find("shows \\-\\- and waits\n"), page.npos) << page;
  EXPECT_NE(man_page(app, "2026-11-21").find(".BR dtool\\-kill (1)\nend runs\n"), page.npos);
}

TEST_F(ManPage, words_that_troff_knows_are_only_words) {
  app.get_subcommand("run")->add_flag("--odd", flag, ".so /etc/x \\fB");
  const std::string page = man_page(*app.get_subcommand("run"), "2026-11-21");
  EXPECT_NE(page.find("\n\\&.so /etc/x \\efB\n"), page.npos) << page;
}

}  // namespace
}  // namespace dtool::cli
