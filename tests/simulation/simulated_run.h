// SPDX-License-Identifier: MIT
// A whole supervised run in one thread: the product's own Machine, Coordinator and LinkState on
// simulated hosts, whose clocks, links, programs and faults follow a scenario. What the run
// promises is checked as it goes and at its end.
#pragma once

#include <optional>
#include <string>

#include "tests/simulation/scenario.h"

namespace dtool::simulation {

struct Outcome {
  std::optional<std::string> broken;  ///< the promise that did not hold, in one sentence
  std::string story;                  ///< what happened, one line each; if it was asked for
  int events = 0;
};

enum class Tell { nothing, story };

Outcome simulate(const Scenario& scenario, Tell tell);

/// The scenario with all faults left out without which a promise is broken nevertheless.
Scenario shortened(Scenario scenario);

}  // namespace dtool::simulation
