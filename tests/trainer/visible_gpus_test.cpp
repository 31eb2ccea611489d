// CUDA_VISIBLE_DEVICES, over machines made of files.
#include "trainer/launch/visible_gpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

class VisibleGpus : public testing::Test {
 protected:
  VisibleGpus()
      : root_(std::filesystem::temp_directory_path() /
              ("dtool_visible_gpus_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_ / "dev");
    for (const char* other : {"nvidiactl", "nvidia-uvm", "null"}) touch(other);
  }
  ~VisibleGpus() override { std::filesystem::remove_all(root_); }

  void touch(const std::string& device) { std::ofstream(root_ / "dev" / device) << ""; }
  void four_gpus() {
    const char* uuids[] = {"GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333", "GPU-cccc4444"};
    for (int i = 0; i < 4; ++i) {
      touch("nvidia" + std::to_string(i));
      const auto folder = root_ / "proc/driver/nvidia/gpus" / std::to_string(i);
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "information") << "Model: \t A GPU\nGPU UUID: \t " << uuids[i] << "\n";
    }
  }
  int count() const {
    return count_gpus([](const std::string&) { return std::nullopt; }, root_);
  }
  int count(const std::string& visible) const {
    return count_gpus([&](const std::string&) { return visible; }, root_);
  }

  std::filesystem::path root_;
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
