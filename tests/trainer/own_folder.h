// A test's own folder on disk.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace dtool::trainer {

/// Begins with an empty folder, named after the test so that others may run beside it.
class OwnFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

}  // namespace dtool::trainer
