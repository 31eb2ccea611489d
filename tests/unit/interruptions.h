// SPDX-License-Identifier: MIT
// Signals that do nothing but end the call in which a thread waits, with EINTR.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace dtool::tests {

/// While it lives, the thread that made it is interrupted all the time.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++count(); };  // and no SA_RESTART
    ::sigaction(SIGUSR1, &action, &before_);
    count() = 0;
    sender_ = std::thread([this, interrupted = ::pthread_self()] {
      for (; !is_over_; std::this_thread::sleep_for(std::chrono::microseconds(200)))
        ::pthread_kill(interrupted, SIGUSR1);
    });
  }
  ~Interruptions() {
    is_over_ = true;
    sender_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

  /// For another thread: returns once that many more came.
  static void await(int more) {
    for (const int last = count() + more; count() < last;)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  static std::atomic<int>& count() {
    static std::atomic<int> count;
    return count;
  }

  struct sigaction before_ {};
  std::atomic<bool> is_over_ = false;
  std::thread sender_;
};

}  // namespace dtool::tests
