// SPDX-License-Identifier: MIT
// Which descriptors a session is told of, and when.
#include "killfiles/channel/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "ssh/host/files.h"
#include "tests/unit/few_descriptors.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

std::array<Descriptor, 2> pair_of_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

class WatchTest : public testing::Test {
 protected:
  WatchTest() { ::sigemptyset(&none_); }

  std::vector<int> ready() {
    std::vector<int> all = watch_.wait(0ms, none_);
    std::ranges::sort(all);
    return all;
  }

  sigset_t none_{};
  Watch watch_;
};

TEST_F(WatchTest, TellsWhatCanBeRead) {
  const auto one = pair_of_sockets();
  const auto other = pair_of_sockets();
  watch_.add(one[0].get());
  watch_.add(other[0].get());
  EXPECT_EQ(ready(), std::vector<int>{});
  write_all(one[1].get(), "x");
  EXPECT_EQ(ready(), std::vector{one[0].get()});
  write_all(other[1].get(), "x");
  std::vector<int> both{one[0].get(), other[0].get()};
  std::ranges::sort(both);
  EXPECT_EQ(ready(), both);
}

TEST_F(WatchTest, TellsWhatCanBeWrittenWhereThatIsAwaited) {
  const auto sockets = pair_of_sockets();
  watch_.add(sockets[0].get());
  watch_.wait_until(sockets[0].get(), Until::readable_or_writable);
  EXPECT_EQ(ready(), std::vector{sockets[0].get()});
  watch_.wait_until(sockets[0].get(), Until::readable);
  EXPECT_EQ(ready(), std::vector<int>{});
  write_all(sockets[1].get(), "x");
  EXPECT_EQ(ready(), std::vector{sockets[0].get()});
}

TEST_F(WatchTest, TellsNothingOfWhatWasRemovedThoughACopyIsOpen) {
  auto sockets = pair_of_sockets();
  const Descriptor copy(::dup(sockets[0].get()));
  watch_.add(sockets[0].get());
  write_all(sockets[1].get(), "x");
  watch_.remove(sockets[0].get());
  sockets[0] = Descriptor();
  EXPECT_EQ(ready(), std::vector<int>{});
}

TEST_F(WatchTest, SaysWhatCannotBeWatched) {
  try {
    watch_.add(-1);
    FAIL() << "it watches nothing";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "epoll_ctl: Bad file descriptor");
  }
}

TEST(Watch, SaysWhyThereIsNone) {
  const tests::FewDescriptors none(0);
  try {
    const Watch watch;
    FAIL() << "there is one without a descriptor";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "epoll_create1: Too many open files");
  }
}

}  // namespace
}  // namespace dtool::host
