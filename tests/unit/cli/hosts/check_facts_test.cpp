// SPDX-License-Identifier: MIT
// What hosts answered becomes facts; like ones fold, the odd one out is marked.
#include "cli/hosts/check_facts.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "ssh/host.h"
#include "ssh/wire/check.h"

namespace dtool::cli {
namespace {

std::vector<ssh::Host> some_hosts() {
  return ssh::parse_hosts("h[1-3]", {});
}

Fact number(const char* name, double value, Unit unit = Unit::gibibytes) {
  return {name, "", Verdict::well, "", Quantity{value, unit}};
}

Checked surveyed(const host::Survey& survey) {
  Checked checked;
  checked.result.exit_code = 0;
  checked.reply.emplace().survey = survey;
  return checked;
}

Checked with_hardware(const host::Hardware& hardware) {
  Checked checked = surveyed({});
  checked.reply->hardware = hardware;
  return checked;
}

/// The first of that name.
Fact find(const Facts& facts, const std::string& name) {
  for (const Fact& fact : facts)
    if (fact.name == name) return fact;
  ADD_FAILURE() << "no fact " << name;
  return {};
}

TEST(CheckFacts, AHostWhoseNameLeadsToItselfAloneIsNamedWhereThereAreOthers) {
  host::Survey survey;
  survey.own_name = "127.0.1.1";
  const Checked checked = surveyed(survey);
  Needs needs;
  needs.machines = 2;
  const Fact fact = find(facts_of(checked, needs, 0, ""), "own name");
  EXPECT_EQ(fact.value, "the host's own name is 127.0.1.1 in its /etc/hosts");
  EXPECT_EQ(fact.verdict, Verdict::warning);
  needs.machines = 1;
  for (const Fact& each : facts_of(checked, needs, 0, "")) EXPECT_NE(each.name, "own name");
}

TEST(CheckFacts, WhatHostsShareStandsOnce) {
  const auto folded = fold_facts(some_hosts(), {{{"bash", "5"}}, {{"bash", "5"}}, {{"bash", "5"}}});
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].hosts.size(), 3u);
}

TEST(CheckFacts, WhatMostHaveStandsFirstAndNamesKeepTheirOrder) {
  const auto folded = fold_facts(some_hosts(), {{{"bash", "4"}, {"rsync", "3"}},
                                                {{"bash", "5"}, {"rsync", "3"}},
                                                {{"bash", "5"}, {"rsync", "3"}}});
  ASSERT_EQ(folded.size(), 3u);
  EXPECT_EQ(folded[0].value, "5");
  EXPECT_EQ(folded[1].value, "4");
  EXPECT_EQ(folded[1].hosts.front().name, "h1");
  EXPECT_EQ(folded[2].name, "rsync");
}

TEST(CheckFacts, NumbersFoldIntoARange) {
  const auto fold = [](double a, double b, double c) {
    return fold_facts(some_hosts(), {{number("x", a)}, {number("x", b)}, {number("x", c)}})
        .at(0)
        .value;
  };
  EXPECT_EQ(fold(7.25, 3, 12.5), "3.0 to 12.5 GiB");
  EXPECT_EQ(fold(3.01, 3.02, 3), "3.0 GiB");
}

TEST(CheckFacts, AWarningDoesNotFoldIntoTheOthersRange) {
  Fact low = number("x", 0.5);
  low.verdict = Verdict::warning;
  const auto folded = fold_facts(some_hosts(), {{number("x", 3)}, {low}, {number("x", 4)}});
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(folded[0].value, "3.0 to 4.0 GiB");
  EXPECT_EQ(folded[1].value, "0.5 GiB");
  EXPECT_EQ(folded[1].hosts.front().name, "h2");
}

TEST(CheckFacts, AVersionThatMostHostsDoNotHaveIsAWarning) {
  std::vector<Facts> facts = {{{"rsync", "3"}}, {{"rsync", "2"}}, {{"rsync", "3"}}};
  mark_differences(facts);
  EXPECT_EQ(facts[0][0].verdict, Verdict::well);
  EXPECT_EQ(facts[1][0].verdict, Verdict::warning);
  EXPECT_EQ(facts[1][0].hint, "most of the others have 3");
  EXPECT_EQ(worst_of(facts[1]), Verdict::warning);
}

TEST(CheckFacts, OfTwoHostsThatDifferTheSecondIsMarked) {
  std::vector<Facts> facts = {{{"rsync", "3"}}, {{"rsync", "2"}}};
  mark_differences(facts);
  EXPECT_EQ(facts[0][0].verdict, Verdict::well);
  EXPECT_EQ(facts[1][0].verdict, Verdict::warning);
}

TEST(CheckFacts, OtherCoresOrSystemsAreNoWarning) {
  std::vector<Facts> facts = {{{"system", "A"}, number("cores", 2)},
                              {{"system", "B"}, number("cores", 4)}};
  mark_differences(facts);
  EXPECT_EQ(worst_of(facts[0]), Verdict::well);
  EXPECT_EQ(worst_of(facts[1]), Verdict::well);
}

TEST(CheckFacts, AHostThatDidNotAnswerHasOneFact) {
  Checked checked;
  checked.result.failure = ssh::Failure::unreachable;
  checked.result.error = "refused";
  checked.result.hint = "try";
  const Facts facts = facts_of(checked, Needs(), 0);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].value, "refused");
  EXPECT_EQ(facts[0].hint, "try");
  EXPECT_EQ(facts[0].verdict, Verdict::failure);
}

TEST(CheckFacts, ADiskWithLessThanAGibibyteIsAWarning) {
  const auto disk = [](std::int64_t bytes) {
    host::Survey survey;
    survey.free_home = bytes;
    return find(facts_of(surveyed(survey), Needs(), 1), "home free");
  };
  EXPECT_EQ(disk(1'073'741'824).verdict, Verdict::well);
  EXPECT_EQ(disk(1'073'741'823).verdict, Verdict::warning);
  EXPECT_EQ(disk(1'048'576).verdict, Verdict::warning);
  EXPECT_EQ(disk(1'048'575).verdict, Verdict::failure) << "a run's own files do not fit";
  EXPECT_EQ(disk(-5).verdict, Verdict::warning);
  EXPECT_DOUBLE_EQ(disk(1'610'612'736).quantity->number, 1.5);
}

TEST(CheckFacts, WhatAHostDoesNotTellIsLeftOut) {
  for (const Fact& fact : facts_of(surveyed({}), Needs(), 1)) {
    EXPECT_TRUE(fact.name != "cores" && fact.name != "memory" && fact.name != "screen")
        << fact.name;
  }
}

TEST(CheckFacts, ARunNeedsNoRsyncButItsOutputsDo) {
  const Fact fact = find(facts_of(surveyed({}), Needs(), 1), "rsync");
  EXPECT_EQ(fact.verdict, Verdict::warning);
  EXPECT_EQ(fact.value, "no usable rsync: dtool fetch and dtool copy --from need it");
  host::Survey survey;
  survey.rsync = "3.2.7";
  EXPECT_EQ(find(facts_of(surveyed(survey), Needs(), 1), "rsync").verdict, Verdict::well);
}

TEST(CheckFacts, GpusOfAKindAreCounted) {
  host::Hardware two;
  two.gpus = {"H100, 80 GiB", "H100, 80 GiB"};
  two.driver = "550";
  EXPECT_EQ(find(facts_of(with_hardware(two), Needs(), 1), "GPUs").value, "2 x H100, 80 GiB");
  EXPECT_EQ(find(facts_of(with_hardware(two), Needs(), 1), "driver").value, "550");
  EXPECT_EQ(find(facts_of(surveyed({}), Needs(), 1), "GPUs").value, "none");
  host::Hardware broken;
  broken.gpu_fault = "mismatch";
  const Fact fact = find(facts_of(with_hardware(broken), Needs(), 1), "GPUs");
  EXPECT_EQ(fact.value, "nvidia-smi fails: mismatch");
  EXPECT_EQ(fact.verdict, Verdict::warning);
}

TEST(CheckFacts, AShellThatPrintsIsAWarning) {
  Checked checked = surveyed({});
  checked.result.log_in_said = "welcome\n";
  EXPECT_EQ(find(facts_of(checked, Needs(), 1), "shell's output").verdict, Verdict::warning);
}

TEST(CheckFacts, AClockIsOffOnlyBeyondTheUncertainty) {
  const auto clock = [](double offset, double uncertainty) {
    ListenerTrial trial;
    trial.hosts.resize(1);
    trial.hosts[0].clock_offset = offset;
    trial.hosts[0].clock_uncertainty = uncertainty;
    return find(facts_of(trial, 0), "clock").verdict;
  };
  EXPECT_EQ(clock(0.9, 0), Verdict::well);
  EXPECT_EQ(clock(1.5, 0.1), Verdict::warning);
  EXPECT_EQ(clock(-1.5, 0.1), Verdict::warning);
  EXPECT_EQ(clock(1.5, 0.6), Verdict::well);
}

}  // namespace
}  // namespace dtool::cli
