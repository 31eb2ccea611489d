// SPDX-License-Identifier: MIT
// CUDA_VISIBLE_DEVICES, over machines made of files.
#include "trainer/launch/launch.h"

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

class VisibleGpus : public testing::Test {
 protected:
  VisibleGpus() {
    for (const char* other : {"nvidiactl", "nvidia-uvm", "null"}) touch(other);
  }

  void touch(const std::string& device) { machine_.write("dev/" + device, ""); }
  void four_gpus() {
    const char* uuids[] = {"GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333", "GPU-cccc4444"};
    for (int i = 0; i < 4; ++i) {
      touch("nvidia" + std::to_string(i));
      machine_.write("proc/driver/nvidia/gpus/" + std::to_string(i) + "/information",
                     std::string("Model: \t A GPU\nGPU UUID: \t ") + uuids[i] + "\n");
    }
  }
  int count() const {
    return count_gpus([](const std::string&) { return std::nullopt; }, machine_.path());
  }
  int count(const std::string& visible) const {
    return count_gpus([&](const std::string&) { return visible; }, machine_.path());
  }

  tests::TemporaryFolder machine_;
};

TEST_F(VisibleGpus, AreAllOfTheMachineUnlessTheVariableIsSet) {
  EXPECT_EQ(count(), 0);
  four_gpus();
  EXPECT_EQ(count(), 4);
}

TEST_F(VisibleGpus, NeedNotBeginWithTheFirstDevice) {
  touch("nvidia3");
  touch("nvidia12");
  EXPECT_EQ(count(), 2);
}

TEST_F(VisibleGpus, AreListedByNumber) {
  four_gpus();
  EXPECT_EQ(count("0,2,3"), 3);
  EXPECT_EQ(count(" 1 , 0"), 2);
  EXPECT_EQ(count("3"), 1);
}

TEST_F(VisibleGpus, EndWithTheFirstEntryThatNamesNone) {
  four_gpus();
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("NoDevFiles"), 0);
  EXPECT_EQ(count("0,1,-1,2"), 2);
  EXPECT_EQ(count("0,7,1"), 1);
  EXPECT_EQ(count("0,,1"), 1);
  EXPECT_EQ(count("0,GPU-bbbb"), 1);
}

TEST_F(VisibleGpus, AreNoneWhereOneIsListedTwice) {
  four_gpus();
  EXPECT_EQ(count("0,1,0"), 0);
  EXPECT_EQ(count("GPU-bbbb,GPU-bbbb3333"), 0);
}

TEST_F(VisibleGpus, AreListedByUuid) {
  four_gpus();
  EXPECT_EQ(count("GPU-bbbb3333,GPU-aaaa1111"), 2);
  EXPECT_EQ(count("GPU-cccc"), 1);
  EXPECT_EQ(count("GPU-bbbb,GPU-dddd,GPU-cccc"), 1);
  EXPECT_EQ(count("GPU-bbbb,0"), 1);
}

TEST_F(VisibleGpus, OfMigInstancesCudaShowsOne) {
  four_gpus();
  EXPECT_EQ(count("MIG-1111,MIG-2222"), 1);
}

TEST_F(VisibleGpus, AreNoMoreThanTheMachineHas) {
  EXPECT_EQ(count("0,1"), 0);
  touch("nvidia0");
  EXPECT_EQ(count("0,1"), 1);
  EXPECT_EQ(count("GPU-aaaa,GPU-bbbb"), 1);
}

TEST_F(VisibleGpus, AreAsManyAsNcclsWorkersAtLeast) {
  EXPECT_NO_THROW(check_gpus(Backend::automatic, 4, 4));
  EXPECT_THROW(check_gpus(Backend::automatic, 5, 4), UsageError);
  EXPECT_THROW(check_gpus(Backend::nccl, 2, 1), UsageError);
  EXPECT_NO_THROW(check_gpus(Backend::gloo, 9, 1));
  EXPECT_NO_THROW(check_gpus(Backend::automatic, 9, 0));
}

}  // namespace
}  // namespace dtool::trainer
