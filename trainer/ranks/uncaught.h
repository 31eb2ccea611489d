// SPDX-License-Identifier: MIT
// Handles an exception that leaves a thread which is not ours. NCCL's watching thread throws if a
// peer is gone or too slow; without this, the process would end with signal 6 and no reason.
#pragma once

#include <functional>
#include <string>

namespace dtool::trainer {

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
