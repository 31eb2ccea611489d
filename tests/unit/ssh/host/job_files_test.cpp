// SPDX-License-Identifier: MIT
// What the record of a job's leader proves.
#include "ssh/host/members.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

Boot boot_of(const std::string& recorded, const std::string& current) {
  const auto leader = parse_leader("12 345 " + recorded, current);
  return leader ? leader->boot : Boot::earlier;
}

TEST(JobFiles, OnlyAnotherBootOfTheSameKindIsAReboot) {
  EXPECT_EQ(boot_of("aaaa", "aaaa"), Boot::this_one);
  EXPECT_EQ(boot_of("aaaa", "bbbb"), Boot::earlier);
  EXPECT_EQ(boot_of("init-7", "init-8"), Boot::earlier);
  EXPECT_EQ(boot_of("init-7", "init-7"), Boot::unknown);
  EXPECT_EQ(boot_of("init-7", "aaaa"), Boot::unknown);
  EXPECT_EQ(boot_of("aaaa", "init-7"), Boot::unknown);
  EXPECT_EQ(boot_of("", ""), Boot::unknown);
  EXPECT_EQ(boot_of("aaaa", ""), Boot::unknown);
  EXPECT_EQ(boot_of("", "aaaa"), Boot::unknown);
}

TEST(JobFiles, ALeaderIsAPidAndAStart) {
  const auto leader = parse_leader("12 34 a", "a");
  ASSERT_TRUE(leader);
  EXPECT_EQ(leader->pid, 12);
  EXPECT_EQ(leader->start, 34U);
  EXPECT_EQ(parse_leader("1 0 a", "a")->pid, 1);
  for (const char* bad : {"", "12", "0 34 a", "-1 34 a", "x 34 a", "12 x a"})
    EXPECT_FALSE(parse_leader(bad, "a")) << bad;
}

TEST(JobFiles, WithoutABootTheLeaderIsFoundAndASessionWithoutItProvesNothing) {
  const auto self = find_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(find_leader({self->pid, self->start, Boot::unknown}));
  EXPECT_FALSE(find_leader({self->pid, self->start + 1, Boot::unknown}));
  EXPECT_FALSE(find_leader({self->pid, self->start, Boot::earlier}));
  constexpr pid_t kNobody = 999'999'999;
  RunTraces traces;
  add_leader({kNobody, 1, Boot::unknown}, traces);
  EXPECT_TRUE(traces.leaders.empty());
  add_leader({kNobody, 1, Boot::this_one}, traces);
  add_leader({self->pid, self->start, Boot::unknown}, traces);
  EXPECT_EQ(traces.leaders.size(), 2U);
}

TEST(JobFiles, ALeaderWhosePidAnotherProcessHasLeavesNoTrace) {
  const auto self = find_process(::getpid());
  ASSERT_TRUE(self);
  RunTraces traces;
  add_leader({self->pid, self->start + 1, Boot::this_one}, traces);
  add_leader({self->pid, self->start, Boot::earlier}, traces);
  EXPECT_TRUE(traces.leaders.empty());
  add_leader({self->pid, self->start, Boot::this_one}, traces);
  EXPECT_EQ(traces.leaders[self->pid], self->start);
}

TEST(JobFiles, AreReadFromTheJobsFolder) {
  const tests::TemporaryFolder folder;
  EXPECT_FALSE(read_job_files(folder.path()).leader);
  EXPECT_EQ(read_job_files(folder.path()).holder, "");
  folder.write("process", "12 34 " + current_boot() + "\n");
  folder.write("holder", "tmux\n");
  const JobFiles files = read_job_files(folder.path());
  ASSERT_TRUE(files.leader);
  EXPECT_EQ(files.leader->pid, 12);
  EXPECT_NE(files.leader->boot, Boot::earlier);
  EXPECT_EQ(files.holder, "tmux");
}

}  // namespace
}  // namespace dtool::host
