// What this machine makes for many hosts: made once, kept in a file on disk that has no name, and
// read from there by each host at its own pace.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "ssh/machine/owned_fd.h"
#include "ssh/machine/reactor.h"
#include "ssh/machine/sha256.h"
#include "ssh/remote.h"

namespace dtool::ssh {

class SharedOutput {
 public:
  /// Begins to make it. Throws HostError(local_program) if there is no room for a file.
  SharedOutput(Reactor& reactor, const SharedBytes& bytes);
  ~SharedOutput();
  SharedOutput(const SharedOutput&) = delete;
  SharedOutput& operator=(const SharedOutput&) = delete;

  /// Writes `before` and then the whole output into the non-blocking pipe `fd`, as it grows; tells
  /// how much of the output was taken. Returns early where the reader has gone or `deadline`
  /// has passed. Throws HostError(local_program) if it could not be made.
  asio::awaitable<void> send(int fd, std::string_view before, Deadline deadline,
                             std::function<void(const Transferred&)> on_sent);

 private:
  void make(const std::function<void(const SharedBytes::Write&)>& maker);
  Transferred transferred(off_t at) const;
  asio::awaitable<bool> send_what_is_there(Waiter& waiter, int fd, off_t& at, Deadline deadline);
  void tell_when_made();
  void expect_success() const;

  Reactor& reactor_;
  OwnedFd file_;
  std::function<void(std::uint64_t, const std::string&)> on_whole_;  ///< nothing: has been told
  Sha256 digest_;
  std::string error_;  ///< once it is made
  std::atomic<bool> is_made_ = false;
  std::atomic<bool> is_unwanted_ = false;
  std::thread thread_;
};

}  // namespace dtool::ssh
