// SPDX-License-Identifier: MIT
// The one thread's event loop, and the only way to wait in it: for a file descriptor or for time,
// always with a deadline, and never past abandon(). Tests name a wait by its place in the source:
// with DTOOL_TEST_STALL=exchange.cpp:150 that wait never ends; with DTOOL_TEST_WAITS=9 the names of
// all waits are written to descriptor 9.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <unordered_set>

#include "ssh/machine/files.h"

namespace dtool::ssh {

namespace asio = boost::asio;

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

/// `timeout` from now.
Deadline after(std::chrono::milliseconds timeout);

class Waiter;

/// Owns the io_context. Everything that waits in it is told when the work is given up.
class Reactor {
 public:
  asio::io_context& context() { return context_; }

  /// Ends every wait, now and later, with HostError(connection_lost): coroutines unwind as for any
  /// failure.
  void abandon();
  bool abandoned() const { return abandoned_; }

  /// Abandons, and runs until every coroutine has unwound. After that nothing refers to sessions or
  /// descriptors.
  void wind_up();

  /// Lets all other ready coroutines run first.
  asio::awaitable<void> yield();

  /// Suspends for `duration`. Throws HostError when abandoned.
  asio::awaitable<void> sleep(std::chrono::milliseconds duration,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE());

  /// Suspends until the timer has expired or was cancelled, and perhaps sooner. abandon() does not
  /// end it: for what ends with another coroutine.
  asio::awaitable<void> wait_for(asio::steady_timer& timer, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE());

 private:
  friend class Waiter;
  asio::io_context context_{1};
  std::unordered_set<Waiter*> waiters_;
  bool abandoned_ = false;
};

/// Waits for one file descriptor, which it does not own and which must outlive it. Several
/// coroutines may wait at once; all wake together.
class Waiter {
 public:
  Waiter(Reactor& reactor, int fd);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  enum class For { readable, writable };
  enum class Outcome { ready, deadline_passed };

  /// Suspends until `fd` is ready or `deadline` has passed. Spurious wake-ups count as ready.
  /// Throws HostError when abandoned.
  asio::awaitable<Outcome> wait(For what, Deadline deadline, const char* file = __builtin_FILE(),
                                int line = __builtin_LINE());

  /// Wakes all waiting coroutines, as if `fd` were ready.
  void wake();

 private:
  Reactor& reactor_;
  asio::posix::stream_descriptor descriptor_;
};

/// Coroutines that end before the one that started them continues.
class TaskGroup {
 public:
  explicit TaskGroup(Reactor& reactor) : reactor_(reactor), all_ended_(reactor.context()) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(asio::awaitable<void> task);
  /// Waits for all of them, then throws the first exception among them. Must be awaited before the
  /// group is destroyed.
  asio::awaitable<void> join(const char* file = __builtin_FILE(), int line = __builtin_LINE());

 private:
  Reactor& reactor_;
  asio::steady_timer all_ended_;  ///< cancelled when the last one ends
  std::size_t running_ = 0;
  std::exception_ptr first_error_;
};

}  // namespace dtool::ssh
