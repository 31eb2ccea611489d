// SPDX-License-Identifier: MIT
#include "ssh/machine/reactor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "ssh/host_error.h"

namespace dtool::ssh {
namespace {

void throw_if_abandoned(const Reactor& reactor) {
  if (reactor.abandoned())
    throw HostError(Failure::connection_lost, "left on interrupt; its work may go on there");
}

/// The test settings of the environment, read at the first wait.
struct WaitTest {
  std::string stall;
  int fd = -1;
  std::set<std::string> met;
};

WaitTest* wait_test() {
  static WaitTest* const test = [] {
    const char* stall = std::getenv("DTOOL_TEST_STALL");
    const char* fd = std::getenv("DTOOL_TEST_WAITS");
    if (stall == nullptr && fd == nullptr) return static_cast<WaitTest*>(nullptr);
    return new WaitTest{stall != nullptr ? stall : "", fd != nullptr ? std::atoi(fd) : -1, {}};
  }();
  return test;
}

/// Whether the wait at this place is to stall.
bool is_to_stall(const char* file, int line) {
  WaitTest* const test = wait_test();
  if (test == nullptr || file == nullptr) return false;
  const char* const slash = std::strrchr(file, '/');
  const std::string name = fmt::format("{}:{}", slash != nullptr ? slash + 1 : file, line);
  if (test->met.insert(name).second && test->fd >= 0) {
    const std::string text = name + "\n";
    [[maybe_unused]] const auto written = ::write(test->fd, text.data(), text.size());
  }
  return name == test->stall;
}

constexpr auto kForEver = std::chrono::hours(24 * 365);

}  // namespace

Deadline after(std::chrono::milliseconds timeout) {
  return Clock::now() + timeout;
}

void Reactor::abandon() {
  abandoned_ = true;
  for (Waiter* waiter : waiters_) waiter->wake();
}

void Reactor::wind_up() {
  abandon();
  context_.restart();
  context_.run();
}

asio::awaitable<void> Reactor::yield() {
  co_await asio::post(context_, asio::use_awaitable);
  throw_if_abandoned(*this);
}

asio::awaitable<void> Reactor::sleep(std::chrono::milliseconds duration, const char* file,
                                     int line) {
  if (is_to_stall(file, line)) duration = kForEver;
  // In slices, so that abandon() needs to know of no timer.
  const Deadline end = after(duration);
  asio::steady_timer timer(context_);
  while (Clock::now() < end) {
    throw_if_abandoned(*this);
    timer.expires_at(std::min(end, after(std::chrono::milliseconds(200))));
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  throw_if_abandoned(*this);
}

asio::awaitable<void> Reactor::wait_for(asio::steady_timer& timer, const char* file, int line) {
  if (!abandoned_ && is_to_stall(file, line)) {
    try {
      co_await sleep(kForEver, nullptr, 0);
    } catch (const HostError&) {
      co_return;  // it waits from now on as it does without the test
    }
  }
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

Waiter::Waiter(Reactor& reactor, int fd) : reactor_(reactor), descriptor_(reactor.context(), fd) {
  reactor_.waiters_.insert(this);
}

Waiter::~Waiter() {
  reactor_.waiters_.erase(this);
  descriptor_.release();
}

void Waiter::wake() {
  boost::system::error_code ignored;
  descriptor_.cancel(ignored);
}

asio::awaitable<Waiter::Outcome> Waiter::wait(For what, Deadline deadline, const char* file,
                                              int line) {
  throw_if_abandoned(reactor_);
  if (is_to_stall(file, line)) co_await reactor_.sleep(kForEver, nullptr, 0);
  asio::steady_timer timer(reactor_.context());
  if (deadline != kNoDeadline) {
    timer.expires_at(deadline);
    // A timer that is ready in the same turn as the descriptor runs its handler after this wait,
    // and perhaps this Waiter, have ended.
    timer.async_wait([&reactor = reactor_, waiter = this](boost::system::error_code error) {
      if (!error && reactor.waiters_.contains(waiter)) waiter->wake();
    });
  }
  const auto direction = what == For::readable ? asio::posix::stream_descriptor::wait_read
                                               : asio::posix::stream_descriptor::wait_write;
  boost::system::error_code ignored;
  co_await descriptor_.async_wait(direction, asio::redirect_error(asio::use_awaitable, ignored));
  throw_if_abandoned(reactor_);
  co_return Clock::now() >= deadline ? Outcome::deadline_passed : Outcome::ready;
}

void TaskGroup::spawn(asio::awaitable<void> task) {
  ++running_;
  asio::co_spawn(reactor_.context(), std::move(task), [this](std::exception_ptr error) {
    if (error && !first_error_) first_error_ = error;
    if (--running_ == 0) all_ended_.cancel();
  });
}

asio::awaitable<void> TaskGroup::join(const char* file, int line) {
  while (running_ > 0) {
    all_ended_.expires_at(kNoDeadline);
    co_await reactor_.wait_for(all_ended_, file, line);
  }
  if (first_error_) std::rethrow_exception(first_error_);
}

}  // namespace dtool::ssh
