// SPDX-License-Identifier: MIT
// A process that steps environments for a rank: its start, its doorbell, the memory that it shares
// with the rank, its output and its end. ProcessEnvironments has as many as it needs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "killfiles/channel/wire.h"
#include "trainer/environments/protocol.h"

namespace dtool::trainer {

/// The process inherits a socket, its doorbell, and memory without a name, and nothing else of this
/// process but the standard streams: what it writes goes to this process's stderr. It dies with the
/// thread that made this object, and does not see signals that are meant for the trainer.
class EnvironmentWorker {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Starts it. Throws std::system_error if this machine has no process, socket or memory for it. A
  /// program that cannot be started is found dead by `hear`.
  explicit EnvironmentWorker(const WorkerSettings& settings);
  /// Hangs up; a process that has not ended after two seconds is killed, with those that it
  /// started.
  ~EnvironmentWorker();
  EnvironmentWorker(const EnvironmentWorker&) = delete;
  EnvironmentWorker& operator=(const EnvironmentWorker&) = delete;

  /// Whether it still listens is found out by `hear`.
  void say(std::string_view bytes);
  /// Waits for a line, which is returned without its end. Throws WorkerFailed.
  std::string hear(Deadline deadline);
  /// Waits for some bytes, at most `size`, which no line has taken, and returns how many came.
  /// Throws WorkerFailed.
  std::size_t hear(char* into, std::size_t size, Deadline deadline);
  /// Whether it has said something that has not been heard: before it is rung, it must not have.
  bool has_spoken() const;
  /// The end of its input, which makes a worker end.
  void hang_up();
  /// What it prints from now on is not shown.
  void mute() { output_.reset(); }

  /// Gives the shared memory its size, once, and maps it: zeros. It can change its size no more.
  /// Throws std::system_error.
  std::byte* share(std::size_t size);
  std::byte* memory() const { return memory_; }

 private:
  void forward_output();
  bool wait_for_something(Deadline deadline);
  [[noreturn]] void fail(const std::string& how);
  [[noreturn]] void tell_death();

  pid_t process_ = -1;
  pid_t keeper_ = -1;      ///< a process that ends the worker's group once this one is gone
  host::Descriptor life_;  ///< its keeper waits for the end of this
  host::Descriptor doorbell_;
  host::Descriptor output_;
  host::Descriptor shared_;
  host::Descriptor ended_;  ///< readable once the process has ended
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  Deadline killed_at_{};  ///< if it has not ended by itself
  std::string heard_;     ///< bytes after the last whole line
  std::string output_tail_;
};

}  // namespace dtool::trainer
