// SPDX-License-Identifier: MIT
// The program dtool-trainer-worker without its main(), compiled together with the library.
#pragma once

#include <functional>
#include <string>

namespace dtool::trainer {

/// One rank from its arguments to its end; returns the exit code. Everything that fails is told on
/// standard error.
int run_worker(int argc, char** argv);

// Handles an exception that leaves a thread which is not ours. NCCL's watching thread throws if a
// peer is gone or too slow; without this, the process would end with signal 6 and no reason.

/// While it lives, an exception that no thread catches leads to a call of `stop`, on that thread,
/// with the exception's first line; `stop` must not return. Only one may exist at a time.
class UncaughtExceptions {
 public:
  explicit UncaughtExceptions(std::function<void(const std::string&)> stop);
  ~UncaughtExceptions();
  UncaughtExceptions(const UncaughtExceptions&) = delete;
  UncaughtExceptions& operator=(const UncaughtExceptions&) = delete;
};

}  // namespace dtool::trainer
