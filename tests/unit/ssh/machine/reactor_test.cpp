// SPDX-License-Identifier: MIT
// Waiting in the event loop: for descriptors, for time, for each other, and never for ever.
#include "ssh/machine/reactor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "ssh/host_error.h"
#include "ssh/machine/process.h"
#include "tests/unit/run_in.h"

namespace dtool::ssh {
namespace {

using std::chrono::milliseconds;
using tests::run_in;

asio::awaitable<Waiter::Outcome> wait_once(Reactor& reactor, int fd, Waiter::For what,
                                           Deadline deadline) {
  Waiter waiter(reactor, fd);
  co_return co_await waiter.wait(what, deadline);
}

void put_byte(int fd) {
  ASSERT_EQ(::write(fd, "x", 1), 1);
}

TEST(Waiter, EndsWhenTheDescriptorIsReady) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  EXPECT_EQ(
      run_in(reactor, wait_once(reactor, pipe.writer.get(), Waiter::For::writable, kNoDeadline)),
      Waiter::Outcome::ready);
  put_byte(pipe.writer.get());
  EXPECT_EQ(
      run_in(reactor, wait_once(reactor, pipe.reader.get(), Waiter::For::readable, kNoDeadline)),
      Waiter::Outcome::ready);
}

TEST(Waiter, EndsWhenTheOtherSideIsClosed) {
  Reactor reactor;
  Pipe pipe = make_pipe(NonBlocking::reader);
  pipe.writer.reset();
  EXPECT_EQ(
      run_in(reactor, wait_once(reactor, pipe.reader.get(), Waiter::For::readable, kNoDeadline)),
      Waiter::Outcome::ready);
}

TEST(Waiter, EndsAtItsDeadlineAndNotBefore) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  const Deadline deadline = after(milliseconds(50));
  EXPECT_EQ(run_in(reactor, wait_once(reactor, pipe.reader.get(), Waiter::For::readable, deadline)),
            Waiter::Outcome::deadline_passed);
  EXPECT_GE(Clock::now(), deadline);
}

TEST(Waiter, ADeadlineThatHasPassedEndsAtOnce) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  EXPECT_EQ(
      run_in(reactor, wait_once(reactor, pipe.reader.get(), Waiter::For::readable, Clock::now())),
      Waiter::Outcome::deadline_passed);
}

TEST(Waiter, LeavesItsDescriptorOpen) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  const Deadline deadline = after(milliseconds(1));
  run_in(reactor, wait_once(reactor, pipe.reader.get(), Waiter::For::readable, deadline));
  put_byte(pipe.writer.get());
  char byte = 0;
  EXPECT_EQ(::read(pipe.reader.get(), &byte, 1), 1);
}

asio::awaitable<void> make_ready_too_late(Reactor& reactor, int fd, Deadline deadline) {
  co_await reactor.yield();
  put_byte(fd);
  std::this_thread::sleep_until(deadline + milliseconds(5));
}

// The descriptor and the timer are ready in the same turn of the loop: the first ends the wait and
// the Waiter, and the second must not touch it. Under AddressSanitizer this fails where it does.
TEST(Waiter, IsNotTouchedByItsTimerAfterItsEnd) {
  for (int i = 0; i < 20; ++i) {
    Reactor reactor;
    const Pipe pipe = make_pipe(NonBlocking::reader);
    const Deadline deadline = after(milliseconds(10));
    TaskGroup group(reactor);
    group.spawn(make_ready_too_late(reactor, pipe.writer.get(), deadline));
    run_in(reactor, wait_once(reactor, pipe.reader.get(), Waiter::For::readable, deadline));
    run_in(reactor, group.join());
    reactor.context().restart();
    reactor.context().poll();
  }
}

asio::awaitable<void> wake_later(Reactor& reactor, Waiter& waiter) {
  co_await reactor.sleep(milliseconds(10));
  waiter.wake();
}

asio::awaitable<void> wait_and_count(Waiter& waiter, int& count) {
  co_await waiter.wait(Waiter::For::readable, kNoDeadline);
  ++count;
}

asio::awaitable<void> wait_several(Reactor& reactor, int fd, int& count) {
  Waiter waiter(reactor, fd);
  TaskGroup group(reactor);
  for (int i = 0; i < 3; ++i) group.spawn(wait_and_count(waiter, count));
  group.spawn(wake_later(reactor, waiter));
  co_await group.join();
}

TEST(Waiter, WakesEveryoneWhoWaits) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  int count = 0;
  run_in(reactor, wait_several(reactor, pipe.reader.get(), count));
  EXPECT_EQ(count, 3);
}

asio::awaitable<void> abandon_later(Reactor& reactor) {
  co_await reactor.sleep(milliseconds(10));
  reactor.abandon();
}

Failure failure_of(Reactor& reactor, asio::awaitable<void> task) {
  try {
    run_in(reactor, std::move(task));
  } catch (const HostError& error) {
    return error.failure();
  }
  return Failure::none;
}

asio::awaitable<void> wait_for_ever(Reactor& reactor, int fd) {
  co_await wait_once(reactor, fd, Waiter::For::readable, kNoDeadline);
}

TEST(Abandon, EndsWaitsAndSleepsNowAndLater) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  asio::co_spawn(reactor.context(), abandon_later(reactor), asio::detached);
  EXPECT_EQ(failure_of(reactor, wait_for_ever(reactor, pipe.reader.get())),
            Failure::connection_lost);
  EXPECT_EQ(failure_of(reactor, wait_for_ever(reactor, pipe.reader.get())),
            Failure::connection_lost);
  EXPECT_EQ(failure_of(reactor, reactor.sleep(std::chrono::hours(1))), Failure::connection_lost);
  EXPECT_EQ(failure_of(reactor, reactor.yield()), Failure::connection_lost);
}

asio::awaitable<void> sleep_and_abandon(Reactor& reactor) {
  TaskGroup group(reactor);
  group.spawn(abandon_later(reactor));
  std::exception_ptr error;
  try {
    co_await reactor.sleep(std::chrono::hours(1));
  } catch (const HostError&) {
    error = std::current_exception();
  }
  co_await group.join();
  if (error) std::rethrow_exception(error);
}

TEST(Abandon, EndsASleepThatIsOnItsWay) {
  Reactor reactor;
  EXPECT_EQ(failure_of(reactor, sleep_and_abandon(reactor)), Failure::connection_lost);
}

struct CountsItsEnd {
  int& count;
  ~CountsItsEnd() { ++count; }
};

asio::awaitable<void> wait_with_guard(Reactor& reactor, int fd, int& count) {
  const CountsItsEnd guard{count};
  co_await wait_once(reactor, fd, Waiter::For::readable, kNoDeadline);
}

TEST(WindUp, UnwindsEveryCoroutine) {
  Reactor reactor;
  std::vector<Pipe> pipes;  // a descriptor has one Waiter
  int count = 0;
  for (int i = 0; i < 5; ++i) {
    pipes.push_back(make_pipe(NonBlocking::reader));
    asio::co_spawn(reactor.context(), wait_with_guard(reactor, pipes.back().reader.get(), count),
                   asio::detached);
  }
  reactor.context().poll();
  EXPECT_EQ(count, 0);
  reactor.wind_up();
  EXPECT_EQ(count, 5);
}

asio::awaitable<void> add_after(Reactor& reactor, milliseconds pause, std::vector<int>& order,
                                int value) {
  co_await reactor.sleep(pause);
  order.push_back(value);
}

asio::awaitable<void> fail_after(Reactor& reactor, milliseconds pause, std::string what) {
  co_await reactor.sleep(pause);
  throw HostError(Failure::timed_out, what);
}

asio::awaitable<void> join_three(Reactor& reactor, std::vector<int>& order) {
  TaskGroup group(reactor);
  group.spawn(add_after(reactor, milliseconds(40), order, 3));
  group.spawn(add_after(reactor, milliseconds(0), order, 1));
  group.spawn(add_after(reactor, milliseconds(20), order, 2));
  co_await group.join();
  order.push_back(4);
}

TEST(TaskGroup, JoinWaitsForAll) {
  Reactor reactor;
  std::vector<int> order;
  run_in(reactor, join_three(reactor, order));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

asio::awaitable<void> join_failing(Reactor& reactor, std::vector<int>& order) {
  TaskGroup group(reactor);
  group.spawn(fail_after(reactor, milliseconds(20), "second"));
  group.spawn(fail_after(reactor, milliseconds(0), "first"));
  group.spawn(add_after(reactor, milliseconds(40), order, 1));
  co_await group.join();
}

TEST(TaskGroup, JoinThrowsTheFirstErrorAfterAllHaveEnded) {
  Reactor reactor;
  std::vector<int> order;
  std::string what;
  try {
    run_in(reactor, join_failing(reactor, order));
  } catch (const HostError& error) {
    what = error.what();
  }
  EXPECT_EQ(what, "first");
  EXPECT_EQ(order, (std::vector<int>{1}));
}

asio::awaitable<void> join_nothing(Reactor& reactor) {
  TaskGroup group(reactor);
  co_await group.join();
}

TEST(TaskGroup, JoiningNothingReturnsAtOnce) {
  Reactor reactor;
  run_in(reactor, join_nothing(reactor));
}

TEST(OwnedFd, IsClosedOnceByItsLastOwner) {
  Pipe pipe = make_pipe(NonBlocking::reader);
  const int reader = pipe.reader.get();
  OwnedFd other = std::move(pipe.reader);
  EXPECT_FALSE(pipe.reader);
  pipe.reader.reset();
  EXPECT_EQ(other.get(), reader);
  OwnedFd& same = other;
  other = std::move(same);
  EXPECT_EQ(other.get(), reader);
  other.reset();
  char byte = 0;
  EXPECT_EQ(::read(reader, &byte, 1), -1);
}

}  // namespace
}  // namespace dtool::ssh
