// Tasks that go on after their connection was lost: what a listener of Remote::run implements
// beside Listener where a host's failure need not be its answer. `dtool logs -f` does.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "ssh/remote.h"

namespace dtool::ssh {

/// What to do on the same host, over a new connection where the last one is not usable.
struct NextTry {
  Task task;
  std::chrono::milliseconds pause{0};  ///< before it
};

struct TriesAgain {
  virtual ~TriesAgain() = default;
  /// Is asked before a result is told; nothing: it is the host's answer.
  virtual std::optional<NextTry> next_try(std::size_t host, const HostResult& result) = 0;
};

}  // namespace dtool::ssh
