// SPDX-License-Identifier: MIT
// What a host must have before rsync brings a tree.
#include "sync/host/prepare_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(PrepareTree, IsRefusedWhereThereIsNoRsync) {
  const tests::TemporaryFolder empty;
  const tests::TemporaryVariable path("PATH", empty.path());
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  FrameInput input(nothing.get());
  PrepareRequest request;
  request.folder = empty.path() / "code";
  try {
    prepare_tree(request, input);
    FAIL() << "it is prepared";
  } catch (const Refused& refused) {
    EXPECT_STREQ(refused.what(), "rsync is not installed");
  }
  EXPECT_TRUE(std::filesystem::is_empty(empty.path()));
}

}  // namespace
}  // namespace dtool::host
