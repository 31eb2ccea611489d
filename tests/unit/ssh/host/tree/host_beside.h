// SPDX-License-Identifier: MIT
// Another host of a copy, which shares the folder: a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "ssh/host/frame_input.h"
#include "ssh/host/tree/take_parcel.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// A process that takes an uncompressed parcel as give() gives it.
class HostBeside {
 public:
  explicit HostBeside(const CopyPlace& place, std::int64_t patience_ms = 60'000)
      : HostBeside(place, patience_ms, make_sockets()) {}
  ~HostBeside() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  HostBeside(const HostBeside&) = delete;
  HostBeside& operator=(const HostBeside&) = delete;

  void give(const std::string& bytes) {
    const std::string frame = to_frame(Kind::package_bytes, bytes);
    // One that has given way reads no more.
    ::send(input_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  }
  /// The exit code: 0, or 3 if it was refused.
  int end() {
    give("");
    input_ = Descriptor();
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WEXITSTATUS(status);
  }
  /// Whether it has ended because it was refused.
  bool has_given_way() {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 3;
  }

 private:
  static std::array<int, 2> make_sockets() {
    std::array<int, 2> sockets{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
    return sockets;
  }
  HostBeside(const CopyPlace& place, std::int64_t patience_ms, std::array<int, 2> sockets)
      : input_(sockets[1]), pid_(::fork()) {
    if (pid_ != 0) {
      ::close(sockets[0]);
      return;
    }
    input_ = Descriptor();
    FrameInput frames(sockets[0]);
    try {
      ParcelTaker().take({place, false, patience_ms, {}}, frames, [](const TreeNews&) {});
    } catch (const Refused&) {
      ::_exit(3);
    } catch (const std::exception&) {
      ::_exit(4);
    }
    ::_exit(0);
  }

  Descriptor input_;
  pid_t pid_ = -1;
};

}  // namespace dtool::host
