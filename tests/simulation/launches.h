// SPDX-License-Identifier: MIT
// Launchers that come and go: runs are started, killed and resumed by commands that may be killed
// after any step, on hosts that are away, reboot, or are slow. What hosts do is modelled; whether a
// kill has proven its claim, and whether a run may go on from another one, is the product's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/session/report.h"

namespace dtool::simulation {

using host::Time;

struct Launch {
  enum class Kind { start, kill, resume } kind = Kind::start;
  Time at{0};
  int steps = 100;       ///< after so many the launcher is killed
  bool forgets = false;  ///< kill --delete
};

struct HostFault {
  enum class Kind {
    reboots,
    is_away,        ///< for 30 s it answers nothing
    waits,          ///< for 60 s no signal ends its processes: a disk or a driver does not answer
    loses_session,  ///< by SIGKILL; its ranks go on
    loses_folders,  ///< its home folder is another one from now on
    is_slow,        ///< for 60 s a start takes 40 s
  } kind = Kind::reboots;
  int host = 0;
  Time at{0};
};

struct LaunchScenario {
  std::uint64_t seed = 0;
  int hosts = 2;
  std::vector<Launch> launches = {};
  std::vector<HostFault> faults = {};
};

LaunchScenario make_launches(std::uint64_t seed);
std::string to_text(const LaunchScenario& scenario);

/// The promise that was broken, if one was; `story`: what happened.
std::optional<std::string> simulate(const LaunchScenario& scenario, std::string* story = nullptr);
LaunchScenario shortened(LaunchScenario scenario);

}  // namespace dtool::simulation
