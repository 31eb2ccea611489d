// SPDX-License-Identifier: MIT
// Something that happens in a simulation, at its time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "ssh/host/session/report.h"

namespace dtool::simulation {

struct Event {
  host::Time time;
  std::uint64_t number;  ///< of two at the same time, the one that was planned first comes first
  std::function<void()> action;

  /// So that a std::priority_queue has the next one on top.
  bool operator<(const Event& other) const {
    return std::pair(other.time, other.number) < std::pair(time, number);
  }
};

}  // namespace dtool::simulation
