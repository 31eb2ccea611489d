// SPDX-License-Identifier: MIT
// Waits until one of many descriptors can be read or written. A session has one, for its script and
// all its connections.
#pragma once

#include <signal.h>

#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/session/report.h"

namespace dtool::host {

/// The event to wait for.
enum class Until { readable, readable_or_writable };

class Watch {
 public:
  /// Throws std::runtime_error.
  Watch();

  void add(int descriptor);
  void wait_until(int descriptor, Until until);
  /// Call it before the descriptor is closed: a child before its exec still has a copy of it.
  void remove(int descriptor);

  /// The descriptors that are ready, closed or broken. None after `patience` or after a signal. The
  /// signals of `mask` are blocked meanwhile.
  std::vector<int> wait(Time patience, const sigset_t& mask);

 private:
  Descriptor epoll_;
};

}  // namespace dtool::host
