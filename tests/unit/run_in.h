// SPDX-License-Identifier: MIT
// Runs a coroutine of the ssh folder to its end, for tests.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "ssh/machine/reactor.h"

namespace dtool::tests {

/// What `task` returns; throws what it throws. Other coroutines of the reactor run meanwhile.
template <typename Value>
Value run_in(ssh::Reactor& reactor, ssh::asio::awaitable<Value> task) {
  std::exception_ptr error;
  std::optional<Value> value;
  ssh::asio::co_spawn(reactor.context(), std::move(task),
                      [&](std::exception_ptr thrown, Value result) {
                        error = thrown;
                        value = std::move(result);
                        reactor.context().stop();
                      });
  reactor.context().restart();
  reactor.context().run();
  if (error) std::rethrow_exception(error);
  return std::move(*value);
}

inline void run_in(ssh::Reactor& reactor, ssh::asio::awaitable<void> task) {
  std::exception_ptr error;
  ssh::asio::co_spawn(reactor.context(), std::move(task), [&](std::exception_ptr thrown) {
    error = thrown;
    reactor.context().stop();
  });
  reactor.context().restart();
  reactor.context().run();
  if (error) std::rethrow_exception(error);
}

}  // namespace dtool::tests
