// What Slurm says and is told, as text.
#include "cli/launchers/slurm/slurm_text.h"

#include <gtest/gtest.h>

#include "cli/action.h"

namespace dtool::cli {
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

TEST(SlurmText, SeedsAreRangesAndSingleOnes) {
  EXPECT_EQ(parse_seeds("1-3,7"), (std::vector<std::uint64_t>{1, 2, 3, 7}));
  EXPECT_TRUE(parse_seeds("").empty());
  for (const char* bad : {"3-1", "a", "1,,2", "1,1"}) {
    EXPECT_THROW(parse_seeds(bad), UsageError) << bad;
  }
}

TEST(SlurmText, NoticeIsAQuarterOfTheTimeAndAMinuteAtMost) {
  EXPECT_EQ(notice_before_end(""), 60);
  EXPECT_EQ(notice_before_end("infinite"), 60);
  EXPECT_EQ(notice_before_end("2"), 30);
  EXPECT_EQ(notice_before_end("0:40"), 10);
  EXPECT_EQ(notice_before_end("1-0"), 60);
  EXPECT_THROW(notice_before_end("soon"), UsageError);
}

SlurmRequest nothing() {
  SlurmRequest request;
  for (const SlurmOption& option : slurm_options()) request.values[option.flag];
  return request;
}

TEST(SbatchLines, NameNodesAndTasksAndNothingThatWasNotAskedFor) {
  EXPECT_EQ(sbatch_lines("run_1", 3, 2, nothing()),
            "#SBATCH --job-name=run_1\n#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=2\n"
            "#SBATCH --requeue\n");
}

TEST(SbatchLines, SpellFlagsAsSlurmDoesAndQuoteWhatItWouldCut) {
  SlurmRequest request = nothing();
  request.values["--gpus_per_node"] = "a100:4";
  request.values["--constraint"] = "[a*2&b*2]";
  request.values["--partition"] = R"(it's "a" \b)";
  request.is_exclusive = true;
  request.arguments = {"--mail-type=END", "--comment=two words", "--no-requeue"};
  const std::string text = sbatch_lines("x", 1, 1, request);
  for (const std::string line :
       {"--gpus-per-node=a100:4", "--constraint=[a*2&b*2]", R"(--partition="it's \"a\" \\b")",
        "--exclusive", "--mail-type=END", "--comment=\"two words\"", "--no-requeue"})
    EXPECT_NE(text.find("#SBATCH " + line + "\n"), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("#SBATCH --requeue"), std::string::npos);
}

TEST(NoticeBeforeEnd, IsAQuarterOfAShortTimeAndAMinuteAtMost) {
  EXPECT_EQ(notice_before_end(""), 60);
  EXPECT_EQ(notice_before_end("1"), 15);
  EXPECT_EQ(notice_before_end("2:00"), 30);
  for (const char* time : {"4", "60", "1:00:00", "1-0", "2-12:30", "1-00:00:30", "UNLIMITED", "0"})
    EXPECT_EQ(notice_before_end(time), 60) << time;
  for (const char* time : {"soon", "1h", "1:2:3:4", "-5", " 5", "5 ", "1-", ":5"})
    EXPECT_THROW(notice_before_end(time), UsageError) << time;
}

TEST(ProcessesOfNode, AreWhatSaysMost) {
  EXPECT_EQ(processes_of_node("", "auto", ""), 1);
  EXPECT_EQ(processes_of_node("", "auto", "4"), 4);
  EXPECT_EQ(processes_of_node("", "auto", "a100:8"), 8);
  EXPECT_EQ(processes_of_node("", "3", "a100:8"), 3);
  EXPECT_EQ(processes_of_node("2", "auto", "a100:8"), 2);
  EXPECT_THROW(processes_of_node("2", "2", ""), UsageError);
}

TEST(ParseSeeds, TakesRangesAndLists) {
  using Seeds = std::vector<std::uint64_t>;
  EXPECT_EQ(parse_seeds(""), Seeds());
  EXPECT_EQ(parse_seeds("5"), Seeds({5}));
  EXPECT_EQ(parse_seeds("1-3,7,10-11"), Seeds({1, 2, 3, 7, 10, 11}));
  EXPECT_EQ(parse_seeds("0-999").size(), 1000U);
  const std::string most = "18446744073709551615";
  EXPECT_EQ(parse_seeds(most).front(), 18446744073709551615U);
  EXPECT_EQ(parse_seeds("18446744073709551614-" + most).size(), 2U);
  for (const std::string text : {"x", "1,", ",1", "3-1", "1-", "-1", "1,1", "1-3,2", "0-1000",
                                 "0-18446744073709551615", "18446744073709551616", "1 2", "1.5"})
    EXPECT_THROW(parse_seeds(text), UsageError) << text;
}

TEST(SbatchArgument, IsALongOneThatDtoolDoesNotGiveItself) {
  for (const char* text : {"--mail-type=END", "--hold", "--comment=a b", "--signal=B:USR1@120"})
    EXPECT_EQ(must_be_sbatch_argument(text), "") << text;
  for (const char* text : {"", "-N5", "x", "--", "--nodes=5", "--output=x", "--a\n=b", "--array=1"})
    EXPECT_NE(must_be_sbatch_argument(text), "") << text;
}

}  // namespace
}  // namespace dtool::cli
