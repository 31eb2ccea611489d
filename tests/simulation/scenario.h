// SPDX-License-Identifier: MIT
// What befalls a simulated run: how large it is, and which faults come when. Made from a seed, so
// that a run can be told again; shortened fault by fault, so that it can be understood.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/session/report.h"

namespace dtool::simulation {

using host::Time;

struct Fault {
  enum class Kind {
    rank_fails,      ///< a process of the machine ends with `code`
    rank_stops,      ///< one is stopped by a signal, for good
    session_killed,  ///< the machine's session, by SIGKILL
    host_dies,       ///< for good
    host_freezes,    ///< with all its processes, for `lasts`
    host_cut,        ///< nothing goes to or from it for `lasts`; what was sent comes later
    walled_off,      ///< a firewall lets its program through, and no report, for `lasts`
    disk_full,       ///< for `lasts`
    power_lost,      ///< of its host, for good, at the disk's step number `code`; 0: at once
  };
  Kind kind = Kind::rank_fails;
  int place = 0;
  Time at{0};  ///< since the run's start, or since the beginning of `attempt`
  int attempt = 0;
  Time lasts{0};  ///< kForGood: for good
  int code = 1;
};

inline constexpr Time kForGood = std::chrono::hours(24);

/// A user's dtool kill.
struct Kill {
  Time at{0};
  Time grace{0};
  int reaches = 0;          ///< how many machines get its mark, by place; then it is cut off
  bool is_cut_off = false;  ///< it marks, and ends nothing
};

struct Scenario {
  std::uint64_t seed = 0;  ///< also of delays, durations and what the programs do
  int places = 2;
  int max_restarts = 0;
  std::chrono::seconds lost_after{60};
  std::optional<int> ends_with = {};
  Time duration{0};      ///< of an attempt in which nothing fails
  Time latency{0};       ///< the most that a message takes on a link that works
  Time longest_stop{0};  ///< the most that ending a machine's processes takes
  std::vector<Fault> faults = {};
  std::optional<Kill> kill = {};
};

Scenario make_scenario(std::uint64_t seed);

/// One line each.
std::string to_text(const Scenario& scenario);

}  // namespace dtool::simulation
