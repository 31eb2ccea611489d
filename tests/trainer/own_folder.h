// SPDX-License-Identifier: MIT
// A fixture with an empty folder of each test's own on disk.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/temporary_folder.h"

namespace dtool::trainer {

class OwnFolder : public testing::Test {
 private:
  const tests::TemporaryFolder own_;

 protected:
  const std::filesystem::path folder_ = own_.path();
};

}  // namespace dtool::trainer
