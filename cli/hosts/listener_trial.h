// SPDX-License-Identifier: MIT
// Tests whether every host reaches rank 0's address. In the same round trip it measures how far
// each host's clock is from the launcher's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// The result for one host.
struct TrialOfHost {
  std::string interface;               ///< the interface of the route; empty: unknown
  bool reached = false;                ///< it read machine 0's message
  std::string fault;                   ///< why not; empty if nothing was tried
  std::optional<double> clock_offset;  ///< seconds ahead of the launcher's clock
  double clock_uncertainty = 0;        ///< seconds: half of the round trip
};

/// The result of the trial.
struct ListenerTrial {
  std::string address;
  std::uint16_t port = 0;
  bool listened = false;
  std::string fault;  ///< why machine 0 did not listen although it should
  std::string hint;
  std::vector<TrialOfHost> hosts;  ///< one per host of the remote
};

/// What to try.
struct TrialPlan {
  std::string address;  ///< machine 0's address; empty: only clocks
  std::uint16_t port = 0;
  std::vector<std::size_t> hosts;  ///< those that have answered
  /// The longest time that it listens, in case dtool is killed meanwhile.
  std::chrono::seconds listens{60};
};

/// Makes machine 0 listen and the others connect to it, then ends the listener.
ListenerTrial try_listener(Console& console, ssh::Remote& remote, const TrialPlan& plan);

}  // namespace dtool::cli
