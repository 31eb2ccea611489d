// SPDX-License-Identifier: MIT
#include "trainer/launch/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

Environment given(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Environment given(const std::vector<std::string>& assignments) {
  std::map<std::string, std::string> variables;
  for (const auto& each : assignments) {
    variables[each.substr(0, each.find('='))] = each.substr(each.find('=') + 1);
  }
  return given(std::move(variables));
}

const std::map<std::string, std::string> kSlurmTask = {
    {"SLURM_PROCID", "3"},          {"SLURM_NTASKS", "4"},
    {"SLURM_LOCALID", "1"},         {"SLURM_NODEID", "1"},
    {"SLURM_JOB_ID", "12345"},      {"SLURM_STEP_ID", "0"},
    {"SLURM_NTASKS_PER_NODE", "2"}, {"SLURM_STEP_NODELIST", "red[08-09]"}};

}  // namespace

TEST(Launch, AProcessWithoutALaunchersVariablesIsNoWorker) {
  EXPECT_FALSE(place_from(given(std::map<std::string, std::string>{}), CommandLine{}));
}

TEST(Launch, AWorkerReadsTheVariablesItWasStartedWith) {
  const Place place{3, 8, 1, 2, 1, {"fd00::1", 29500}};
  EXPECT_EQ(place_from(given(worker_variables(place, given(std::vector<std::string>{}), 1)),
                       CommandLine{}),
            place);
}

TEST(Launch, SlurmsTasksMeetOnTheFirstNode) {
  EXPECT_EQ(place_from(given(kSlurmTask), CommandLine{}), (Place{3, 4, 1, 2, 1, {"red08", 17345}}));
}

TEST(Launch, AllOfAMachinesSlurmTasksCountTheSame) {
  auto variables = kSlurmTask;
  variables.erase("SLURM_NTASKS_PER_NODE");
  const auto ranks_beside = [&](const char* tasks, const char* node, const char* local) {
    variables["SLURM_STEP_TASKS_PER_NODE"] = tasks;
    variables["SLURM_NODEID"] = node;
    variables["SLURM_LOCALID"] = local;
    return place_from(given(variables), CommandLine{})->local_world_size;
  };
  EXPECT_EQ(ranks_beside("2(x2)", "1", "0"), 2);
  EXPECT_EQ(ranks_beside("2(x2)", "1", "1"), 2);
  EXPECT_EQ(ranks_beside("4", "0", "0"), 4);
  EXPECT_EQ(ranks_beside("3,1(x2),5", "0", "0"), 3);
  EXPECT_EQ(ranks_beside("3,1(x2),5", "2", "0"), 1);
  EXPECT_EQ(ranks_beside("3,1(x2),5", "3", "0"), 5);
  EXPECT_EQ(ranks_beside("what", "1", "1"), 2) << "at least those up to this one";
}

TEST(Launch, MasterAddressGoesBeforeSlurmsNodes) {
  auto variables = kSlurmTask;
  variables["MASTER_ADDR"] = "blue";
  variables["MASTER_PORT"] = "4000";
  EXPECT_EQ(place_from(given(variables), CommandLine{})->listener, (Endpoint{"blue", 4000}));
}

TEST(Launch, TheBodyOfASbatchScriptIsNoTask) {
  auto variables = kSlurmTask;
  variables.erase("SLURM_STEP_ID");
  EXPECT_FALSE(place_from(given(variables), CommandLine{}));
}

TEST(Launch, FlagsThatSayWhichMachineThisIsGoBeforeSlurm) {
  CommandLine options;
  options.machine_id = 0;
  EXPECT_FALSE(place_from(given(kSlurmTask), options));
}

TEST(Launch, OpenMpiNeedsAnAddress) {
  const auto task = given(std::map<std::string, std::string>{{"OMPI_COMM_WORLD_RANK", "1"},
                                                             {"OMPI_COMM_WORLD_SIZE", "2"},
                                                             {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_THROW(place_from(task, CommandLine{}), UsageError);
  CommandLine options;
  options.listener = Endpoint{"red01", 29500};
  EXPECT_EQ(place_from(task, options), (Place{1, 2, 0, 1, 0, {"red01", 29500}}));
}

TEST(Launch, RefusesVariablesThatContradictEachOther) {
  using Variables = std::map<std::string, std::string>;
  EXPECT_THROW(place_from(given(Variables{{"RANK", "2"}, {"WORLD_SIZE", "2"}}), CommandLine{}),
               UsageError);
  EXPECT_THROW(place_from(given(Variables{{"RANK", "0"}}), CommandLine{}), UsageError);
  EXPECT_THROW(place_from(given(Variables{{"RANK", "x"}, {"WORLD_SIZE", "2"}}), CommandLine{}),
               UsageError);
}

TEST(Launch, TheFirstHostOfANodeList) {
  EXPECT_EQ(first_of_node_list("red"), "red");
  EXPECT_EQ(first_of_node_list("red,blue"), "red");
  EXPECT_EQ(first_of_node_list("red[01-03,7],blue"), "red01");
  EXPECT_EQ(first_of_node_list("red[7,9]"), "red7");
  EXPECT_EQ(first_of_node_list("rack[1-2]-gpu,x"), "rack1-gpu");
}

TEST(Launch, ThreadsFollowTheWorkAndTheCores) {
  EXPECT_EQ(useful_threads(64, 1, 1'000'000), 1);
  EXPECT_EQ(useful_threads(64, 4, 10'000'000'000), 16);
  EXPECT_EQ(useful_threads(2, 4, 10'000'000'000), 1);
}

TEST(Launch, TheUsersThreadsAreLeftAlone) {
  const auto user = given(std::map<std::string, std::string>{{"OMP_NUM_THREADS", "7"}});
  for (const auto& each : worker_variables(Place{}, user, 2)) {
    EXPECT_FALSE(each.starts_with("OMP_NUM_THREADS")) << each;
  }
}

TEST(Launch, NamesTheFirstEightMissingMachines) {
  EXPECT_EQ(name_missing_ranks({2, 3, 5}, 2), "machine 1 (rank 2, 3), machine 2 (rank 5)");
  std::vector<int> ranks;
  for (int rank = 1; rank < 1000; ++rank) ranks.push_back(rank);
  EXPECT_TRUE(name_missing_ranks(ranks, 1).ends_with("machine 8 (rank 8), and 991 machines more"));
}
