// SPDX-License-Identifier: MIT
// A session's socket: what comes, what is kept until there is room, and a peer that is gone.
#include "killfiles/channel/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "ssh/host/files.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

class WireTest : public testing::Test {
 protected:
  WireTest() {
    ::sigemptyset(&none_);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    peer_ = Descriptor(ends[1]);
    wire_.emplace(Descriptor(ends[0]), watch_);
  }

  bool is_ready() { return !watch_.wait(0ms, none_).empty(); }

  /// All that has come to the other end.
  std::string heard() const {
    std::string all;
    std::array<char, 4096> piece{};
    for (ssize_t size = 0; (size = ::recv(peer_.get(), piece.data(), piece.size(), 0)) > 0;)
      all.append(piece.data(), static_cast<std::size_t>(size));
    return all;
  }

  /// So that nothing can be written any more.
  void fill() const {
    while (::send(wire_->descriptor(), "f", 1, MSG_DONTWAIT) == 1) {
    }
  }

  sigset_t none_{};
  Watch watch_;
  std::optional<Wire> wire_;
  Descriptor peer_;
  std::string read_;
};

TEST_F(WireTest, ReadsWhatHasComeAndNoMoreThanItMay) {
  EXPECT_EQ(wire_->read(read_, 10), Wire::Read::nothing_yet);
  write_all(peer_.get(), "abc");
  EXPECT_TRUE(is_ready());
  errno = EAGAIN;  // of the read before
  EXPECT_EQ(wire_->read(read_, 2), Wire::Read::some);
  EXPECT_EQ(read_, "ab");
  EXPECT_EQ(wire_->read(read_, 2), Wire::Read::some) << "one byte";
  EXPECT_EQ(read_, "abc");
  EXPECT_EQ(wire_->read(read_, 2), Wire::Read::nothing_yet);
}

TEST_F(WireTest, IsClosedByItsPeersEndWhateverFailedBefore) {
  peer_ = Descriptor();
  for (const int before : {0, EAGAIN, EINTR}) {
    errno = before;
    EXPECT_EQ(wire_->read(read_, 10), Wire::Read::closed);
  }
  EXPECT_EQ(read_, "");
  EXPECT_FALSE(wire_->write("x", 10));
}

TEST_F(WireTest, IsClosedByAnError) {
  EXPECT_TRUE(wire_->write("unread", 10));
  peer_ = Descriptor();
  EXPECT_EQ(wire_->read(read_, 10), Wire::Read::closed) << "connection reset by peer";
}

TEST_F(WireTest, WritesOnce) {
  errno = EAGAIN;
  EXPECT_TRUE(wire_->write("one", 10));
  EXPECT_TRUE(wire_->flush());
  EXPECT_EQ(heard(), "one");
  EXPECT_FALSE(is_ready()) << "there is nothing to write";
}

TEST_F(WireTest, KeepsWhatFindsNoRoomUntilThereIsSome) {
  fill();
  EXPECT_TRUE(wire_->write("0123456789", 10));
  EXPECT_FALSE(wire_->write("x", 10)) << "the peer reads nothing";
  EXPECT_FALSE(is_ready());
  EXPECT_EQ(heard().find_first_not_of('f'), std::string::npos);
  EXPECT_TRUE(is_ready()) << "there is room";
  EXPECT_TRUE(wire_->flush());
  EXPECT_EQ(heard(), "0123456789x");
  EXPECT_FALSE(is_ready());
}

TEST_F(WireTest, IsWatchedAsLongAsItIsThere) {
  write_all(peer_.get(), "x");
  const Descriptor copy(::dup(wire_->descriptor()));
  EXPECT_TRUE(is_ready());
  Wire other = *std::move(wire_);
  wire_.reset();
  EXPECT_TRUE(is_ready());
  { const Wire last = std::move(other); }
  EXPECT_FALSE(is_ready());
}

}  // namespace
}  // namespace dtool::host
