// What one program of this machine prints, sent to many hosts: run once, kept in a file on disk
// that has no name, and read from there by each host at its own pace.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "ssh/machine/process.h"
#include "ssh/machine/reactor.h"
#include "ssh/machine/sha256.h"
#include "ssh/remote.h"

namespace dtool::ssh {

class SharedOutput {
 public:
  /// Starts the program. Throws HostError(local_program) where it cannot be started or there is no
  /// room for a file.
  SharedOutput(Reactor& reactor, const ProgramOutput& program);

  /// Writes `before` and then the whole output into the non-blocking pipe `fd`, as it grows; tells
  /// how much of the output was taken. Returns early where the reader has gone or `deadline`
  /// has passed. Throws HostError(local_program) where the program failed.
  asio::awaitable<void> send(int fd, std::string_view before, Deadline deadline,
                             std::function<void(const Transferred&)> on_sent);

 private:
  Transferred transferred(off_t at);
  asio::awaitable<bool> send_what_is_there(Waiter& waiter, int fd, off_t& at, Deadline deadline);
  void digest_more();
  void expect_success(int exit_code) const;

  Reactor& reactor_;
  std::string name_;  ///< the program's
  OwnedFd in_;
  OwnedFd out_;
  OwnedFd err_;
  Process process_;                                                  // after its files
  std::function<void(std::uint64_t, const std::string&)> on_whole_;  ///< nothing: has been told
  Sha256 digest_;
  off_t digested_ = 0;
};

}  // namespace dtool::ssh
