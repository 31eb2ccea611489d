// SPDX-License-Identifier: MIT
// What a host must have before rsync brings a tree, and that one at a time does.
#include "sync/host/prepare_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "sync/host/tree_folder.h"
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

TEST(PrepareTree, WaitsForTheOneThatHasTheFolder) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable home_variable("HOME", home.path());
  PrepareRequest request;
  request.folder = home.path() / "code";
  std::optional<TreeFolder> other(std::in_place, request.folder);
  other->take_lock();
  std::atomic<bool> has_ended = false;
  std::thread preparing([&] {
    const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    FrameInput input(nothing.get());
    EXPECT_THROW(prepare_tree(request, input), std::exception);  // no names come
    has_ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has_ended);
  other.reset();
  preparing.join();
}

}  // namespace
}  // namespace dtool::host
