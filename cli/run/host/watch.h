// Waits until one of many descriptors can be read or written. A session has one, for its script and
// all its connections.
#pragma once

#include <signal.h>

#include <vector>

#include "cli/run/host/report.h"
#include "ssh/host/files.h"

namespace dtool::host {

/// What a descriptor is waited for.
enum class Until { readable, readable_or_writable };

class Watch {
 public:
  /// Throws std::runtime_error.
  Watch();

  void add(int descriptor);
  void wait_until(int descriptor, Until until);
  /// Before it is closed: a child that is about to become another program still has it.
  void remove(int descriptor);

  /// Those that are ready, closed or broken. None after `patience`, or where a signal came; those
  /// of `mask` do not come meanwhile.
  std::vector<int> wait(Time patience, const sigset_t& mask);

 private:
  Descriptor epoll_;
};

}  // namespace dtool::host
