// SPDX-License-Identifier: MIT
// How a host counts and names its GPUs by what nvidia-smi prints and the AMD driver's files say.
#include "ssh/host/answers/gpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using Names = std::vector<std::string>;

class GpusTest : public testing::Test {
 protected:
  /// What nvidia-smi prints and how it ends, asked for fields and with -L.
  HostGpus find(const std::string& to_query, const std::string& to_list) const {
    const auto program =
        folder_.write("bin/nvidia-smi", "#!/bin/sh\ncase $1 in -L) printf '" + to_list +
                                            ";; *) printf '" + to_query + ";; esac\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return HostGpus::find(folder_.path());
  }

  /// A node of the AMD driver's.
  void add_node(int number, const std::string& id) const {
    folder_.write("sys/class/kfd/kfd/topology/nodes/" + std::to_string(number) + "/gpu_id", id);
  }

  static Hardware told(const HostGpus& gpus) {
    Hardware hardware;
    gpus.tell(hardware);
    return hardware;
  }

  const tests::TemporaryFolder folder_;
  const tests::TemporaryVariable path_{"PATH", folder_.path().string() + "/bin"};
};

TEST_F(GpusTest, OneIsCountedAndNamedByTheFirstAnswer) {
  const HostGpus gpus =
      find("A, 81559 MiB, 550.54, GPU-aa, Disabled\\n'", "GPU 0: other (UUID: GPU-bb)\\n'");
  EXPECT_EQ(gpus.count_visible({}, ""), 1);
  EXPECT_EQ(told(gpus).gpus, Names{"A, 81559 MiB"});
  EXPECT_EQ(told(gpus).driver, "550.54");
  EXPECT_EQ(told(gpus).gpu_fault, "");
}

TEST_F(GpusTest, AreListedWhereTheAnswerIsNoneOrAnOddOne) {
  const std::string list = "GPU 0: NVIDIA A (UUID: GPU-aa)\\nGPU 1: B (UUID: GPU-bb)\\n'";
  const std::string good = "A, 1 MiB, 5.4, GPU-aa, Disabled\\n";
  for (const std::string& odd :
       {std::string("'"), std::string("No devices were found\\n'"), std::string("\\n'"),
        std::string("1 MiB, 5.4, uuid, Disabled\\n'"), std::string("AGPU-aa\\n'"),
        std::string("GPU-aa, Disabled\\n'"), good + "Unable to go on\\n'", good + "'; exit 1"}) {
    const HostGpus gpus = find(odd, list);
    EXPECT_EQ(gpus.count_visible({}, ""), 2) << odd;
    EXPECT_EQ(told(gpus).gpus, (Names{"NVIDIA A", "B"})) << odd;
    EXPECT_EQ(told(gpus).driver, "") << odd;
    EXPECT_EQ(told(gpus).gpu_fault, "") << odd;
  }
}

TEST_F(GpusTest, OddLinesOfTheListCountForWhatTheySay) {
  const HostGpus gpus = find("'; exit 2",
                             "  MIG 1g.5gb Device 0: (UUID: MIG-0)\\nDriver: x\\nGPU 0\\n"
                             "GPU 1: B\\nGPU 2: C (UUID: GPU-cc)\\n'");
  EXPECT_EQ(gpus.count_visible({}, ""), 3);
  EXPECT_EQ(told(gpus).gpus, (Names{"B", "C"}));
  EXPECT_EQ(gpus.lack_of({}, "GPU-cc"), "");
  EXPECT_EQ(gpus.lack_of({}, "GPU-bb"), "this host has no GPU GPU-bb (it has 3)");
  EXPECT_EQ(gpus.lack_of({}, "MIG-0"), "this host has no MIG instance MIG-0");
}

TEST_F(GpusTest, KeepTheirFullNamesWhereInstancesAreListed) {
  const HostGpus gpus = find("A, 1 MiB, 5.4, GPU-aa, Enabled\\n'",
                             "GPU 0: A (UUID: GPU-aa)\\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\\n'");
  EXPECT_EQ(told(gpus).gpus, Names{"A, 1 MiB"});
  EXPECT_EQ(told(gpus).driver, "5.4");
  EXPECT_EQ(gpus.lack_of({}, "MIG-1"), "");
  EXPECT_EQ(gpus.lack_of({}, "MIG-11"), "this host has no MIG instance MIG-11");
}

TEST_F(GpusTest, WhatNvidiaSmiSaysAgainstItselfIsTold) {
  const HostGpus gpus = find("'; exit 9", "no driver\\n'; echo at all >&2; exit 9");
  EXPECT_EQ(told(gpus).gpu_fault, "no driver\nat all\n");
  EXPECT_EQ(gpus.count_visible({}, ""), 0);
  EXPECT_EQ(gpus.lack_of({}, "0"), "this host has no GPU");
}

TEST_F(GpusTest, ARepeatedOneIsRefusedHoweverItIsNamed) {
  const HostGpus gpus = find("'; exit 2", "GPU 0: A (UUID: GPU-aa)\\nGPU 1: B (UUID: GPU-bb)\\n'");
  const std::string lack = " is a GPU that was named before, and CUDA then shows none";
  EXPECT_EQ(gpus.lack_of({}, "1,1"), "1" + lack);
  EXPECT_EQ(gpus.lack_of({}, "GPU-aa,GPU-bb,GPU-a"), "GPU-a" + lack);
  EXPECT_EQ(gpus.lack_of({}, "0,1"), "");
  EXPECT_EQ(gpus.lack_of({}, ""), "");
}

TEST_F(GpusTest, OfAmdAreCountedFromTheFirstNodeOnBesideAnNvidiaSmiWithoutAny) {
  add_node(0, "4095\n");
  EXPECT_EQ(told(HostGpus::find(folder_.path())).gpus, Names{"AMD"});
  add_node(1, "x\n");
  add_node(2, "1\n");
  add_node(4, "1\n");  // a gap ends them
  const HostGpus gpus = find("'; exit 9", "'; exit 9");
  EXPECT_EQ(told(gpus).gpus, (Names{"AMD", "AMD"}));
  EXPECT_EQ(gpus.count_visible({}, ""), 2);
}

TEST_F(GpusTest, WhereTheDriverTellsNoUuidsNoMoreAreTakenThanThereAre) {
  for (const int node : {0, 1}) add_node(node, "4095\n");
  const HostGpus gpus = HostGpus::find(folder_.path());
  EXPECT_EQ(gpus.lack_of({}, "GPU-x,GPU-y"), "");
  EXPECT_EQ(gpus.lack_of({}, "GPU-x,GPU-y,GPU-z"), "this host has no GPU GPU-z (it has 2)");
}

TEST_F(GpusTest, OfAmdAreNotCountedBesideNvidias) {
  add_node(0, "4095\n");
  const HostGpus gpus = find("A, 1 MiB, 5.4, GPU-aa, N\\nA, 1 MiB, 5.4, GPU-bb, N\\n'", "'");
  EXPECT_EQ(gpus.count_visible({}, ""), 2);
  EXPECT_EQ(told(gpus).gpus, (Names{"A, 1 MiB", "A, 1 MiB"}));
  EXPECT_EQ(gpus.count_visible({{}, "0", {}}, ""), 2) << "another maker's variable";
}

TEST_F(GpusTest, NoMoreThan1024NodesAreLookedAt) {
  for (int node = 0; node < 1026; ++node) add_node(node, "1\n");
  EXPECT_EQ(HostGpus::find(folder_.path()).count_visible({}, ""), 1024);
}

}  // namespace
}  // namespace dtool::host
