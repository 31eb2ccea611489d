// SPDX-License-Identifier: MIT
// What dtool-host says of files and disks.
#include "ssh/host/files.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

TEST(FreeBytes, BlocksThatAreKeptForRootAreNotFree) {
  struct statvfs disk {};
  disk.f_bsize = 1U << 20U;  // only a hint for reading
  disk.f_frsize = 4096;
  disk.f_blocks = 1000;
  disk.f_bfree = 100;
  disk.f_bavail = 60;
  EXPECT_EQ(free_bytes(disk), 60U * 4096U);
  disk.f_bavail = 0;
  EXPECT_EQ(free_bytes(disk), 0U);
}

}  // namespace
}  // namespace dtool::host
