// SPDX-License-Identifier: MIT
// Runs a program on this machine whose remote shell is one of dtool's own connections. rsync starts
// `dtool remote_shell HOST COMMAND…`. That process hands its standard streams to the dtool that
// started rsync, over an inherited socket, and waits for the exit code.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/machine/reactor.h"
#include "ssh/remote.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// Runs `program` to its end. If it starts a remote shell, that runs on `connection`. The output of
/// both goes to `on_output`. Throws HostError.
asio::awaitable<int> run_local_program(Reactor& reactor, Connection& connection,
                                       LocalProgram program,
                                       std::function<void(Stream, std::string_view)> on_output,
                                       Deadline deadline);

// Bytes that this machine makes for many hosts. They are made once and kept in an unnamed file on
// disk. Each host reads them from there at its own pace.

class SharedOutput {
 public:
  /// Starts making the bytes, of which at most `most_unsent` lie there before let_go() lets the
  /// next ones in; 0: no limit. Throws HostError(local_program) if there is no room for a file.
  SharedOutput(Reactor& reactor, const SharedBytes& bytes, std::uint64_t most_unsent = 0);
  ~SharedOutput();
  SharedOutput(const SharedOutput&) = delete;
  SharedOutput& operator=(const SharedOutput&) = delete;

  /// Writes `before` and then the whole output into the non-blocking pipe `fd`, as the output
  /// grows; reports how much was taken. False if it stopped early: the reader has gone, `deadline`
  /// has passed (it may be moved), or a call failed. Throws HostError(local_program) if the output
  /// could not be made.
  asio::awaitable<bool> send(int fd, std::string_view before, const Deadline* deadline,
                             std::function<void(const Transferred&)> on_sent);

  /// Nobody needs what stands before `at`: the disk gets it back.
  void let_go(std::uint64_t at);

 private:
  void make(const std::function<void(const SharedBytes::Write&)>& maker);
  Transferred transferred(off_t at) const;
  void wait_for_room(std::uint64_t made) const;
  asio::awaitable<bool> send_what_is_there(Waiter& waiter, int fd, off_t& at,
                                           const Deadline* deadline);
  void tell_when_made();
  void expect_success() const;

  Reactor& reactor_;
  OwnedFd file_;
  std::function<void(std::uint64_t, const std::string&)> on_whole_;  ///< nothing: has been called
  Sha256 digest_;
  std::string error_;  ///< set once it is made
  const std::uint64_t most_unsent_;
  std::atomic<std::uint64_t> let_go_ = 0;  ///< so many bytes are not there any more
  std::atomic<bool> is_made_ = false;
  std::atomic<bool> is_unwanted_ = false;
  std::thread thread_;
};

/// The inputs that the tasks of one Remote::run share: each is made once.
class SharedOutputs {
 public:
  /// Whether SharedBytes::most_unsent holds: no task waits for its turn.
  enum class Limits { no, yes };
  SharedOutputs(Reactor& reactor, std::size_t tasks, Limits limits)
      : reactor_(reactor), limits_(limits), taken_(tasks) {}

  /// The output of these bytes, which begins to be made if it is new. Throws
  /// HostError(local_program).
  SharedOutput& of(const std::shared_ptr<const SharedBytes>& bytes);
  /// Begins to make it; whoever needs it later is told if that is not possible.
  void make_soon(const std::shared_ptr<const SharedBytes>& bytes);

  /// A task that needs no more has taken so much.
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  /// So much has the task of that number taken. The slowest one holds back what makes the bytes,
  /// and what all have taken is let go.
  void note_taken(std::size_t task, std::uint64_t bytes);

 private:
  Reactor& reactor_;
  Limits limits_;
  std::vector<std::uint64_t> taken_;
  std::map<std::shared_ptr<const SharedBytes>, std::unique_ptr<SharedOutput>> outputs_;
};

}  // namespace dtool::ssh
