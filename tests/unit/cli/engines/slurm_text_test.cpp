// SPDX-License-Identifier: MIT
// What Slurm says and is told, as text.
#include "cli/engines/scheduler.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

JobShape shape(std::size_t nodes, int tasks) {
  JobShape shape;
  shape.run_id = "run_1";
  shape.nodes = nodes;
  shape.tasks = shape.processes = tasks;
  return shape;
}

TEST(SbatchLines, NameNodesAndTasksAndNothingThatWasNotAskedFor) {
  EXPECT_EQ(sbatch_lines(shape(3, 2), {}),
            "#SBATCH --job-name=run_1\n#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=2\n"
            "#SBATCH --requeue\n");
}

TEST(SbatchLines, SpellFlagsAsSlurmDoesAndQuoteWhatItWouldCut) {
  JobRequest request;
  request.values["--gpus_per_node"] = "a100:4";
  request.values["--constraint"] = "[a*2&b*2]";
  request.values["--partition"] = R"(it's "a" \b)";
  request.values["--exclusive"] = "true";
  request.arguments = {"--mail-type=END", "--comment=two words", "--no-requeue"};
  const std::string text = sbatch_lines(shape(1, 1), request);
  for (const std::string line :
       {"--gpus-per-node=a100:4", "--constraint=[a*2&b*2]", R"(--partition="it's \"a\" \\b")",
        "--exclusive", "--mail-type=END", "--comment=\"two words\"", "--no-requeue"})
    EXPECT_NE(text.find("#SBATCH " + line + "\n"), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("#SBATCH --requeue"), std::string::npos);
}

TEST(SbatchLines, AskForANoticeWhereACheckpointIsToBeWrittenUnlessTheUserDoes) {
  JobShape trainer = shape(1, 1);
  trainer.wants_notice = true;
  trainer.notice = 15;
  JobRequest request;
  EXPECT_NE(sbatch_lines(trainer, request).find("--signal=B:USR1@15\n"), std::string::npos);
  request.arguments = {"--signal=USR2@9"};
  EXPECT_EQ(sbatch_lines(trainer, request).find("B:USR1"), std::string::npos);
}

TEST(SbatchLines, GiveTorchrunTheCoresOfItsProcesses) {
  JobShape torchrun = shape(2, 1);
  torchrun.processes = 4;
  EXPECT_NE(sbatch_lines(torchrun, {}).find("--cpus-per-task=4\n"), std::string::npos);
}

TEST(SbatchArgument, IsALongOneThatDtoolDoesNotGiveItself) {
  for (const char* text : {"--mail-type=END", "--hold", "--comment=a b", "--signal=B:USR1@120"})
    EXPECT_EQ(must_be_sbatch_argument(text), "") << text;
  for (const char* text : {"", "-N5", "x", "--", "--nodes=5", "--output=x", "--a\n=b", "--array=1"})
    EXPECT_NE(must_be_sbatch_argument(text), "") << text;
}

}  // namespace
}  // namespace dtool::cli
