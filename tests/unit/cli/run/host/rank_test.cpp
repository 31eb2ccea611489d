// SPDX-License-Identifier: MIT
// A process that a launcher starts: the numbers that it is told.
#include "cli/run/host/rank.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace dtool::host {
namespace {

using Counts = std::vector<int>;

TEST(SlurmText, TasksOfEachNodeAreReadAsSlurmWritesThem) {
  EXPECT_EQ(parse_tasks_per_node("2(x3)"), (Counts{2, 2, 2}));
  EXPECT_EQ(parse_tasks_per_node("4,1(x2),3"), (Counts{4, 1, 1, 3}));
  EXPECT_EQ(parse_tasks_per_node("0,2"), (Counts{1, 2}));
  for (const char* nothing :
       {"", "two", "2(x)", "2(x-1)", "2(x99999999)", "99999999999999999999"}) {
    EXPECT_EQ(parse_tasks_per_node(nothing), Counts{}) << nothing;
  }
}

std::string refusal_of(const std::vector<std::string>& words) {
  try {
    run_rank(words);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// With a fault each, since without one the program would start.
TEST(RankWords, AreRefusedUnlessAllAreWhatTheyMayBe) {
  const std::vector<std::string> numbers = {"job", "/r", "0", "h", "1", "0", "0",  "words",
                                            "2",   "1",  "1", "0", "2", "1", "a b"};
  EXPECT_NE(refusal_of(numbers).find("name is more than a word"), std::string::npos);
  std::vector<std::string> changed = numbers;
  changed[10] = "-1";
  EXPECT_NE(refusal_of(changed).find("word 11 is not a number"), std::string::npos);
  changed = numbers;
  changed[13] = "two";
  EXPECT_NE(refusal_of(changed).find("how many processes"), std::string::npos);
  changed[13] = "2(x1),1,1";
  changed[9] = "3";
  EXPECT_NE(refusal_of(changed).find("how many processes"), std::string::npos);
  changed = numbers;
  changed[7] = "variables";
  changed[14] = "PATH";
  EXPECT_NE(refusal_of(changed).find("word 9 is not a number"), std::string::npos)
      << "2 is no variable";
  changed[9] = "BASH_FUNC_x%%";
  EXPECT_NE(refusal_of(changed).find("BASH_FUNC_x%% is not the name"), std::string::npos);
  for (const std::vector<std::string>& few : {std::vector<std::string>{}, {"slurm"}, {"job", "/r"}})
    EXPECT_EQ(refusal_of(few), "rank: a word is missing");
  EXPECT_NE(refusal_of({"machine", "/s", "0", "x", "1", "0"}).find("word 4 is not"),
            std::string::npos);
}

}  // namespace
}  // namespace dtool::host
