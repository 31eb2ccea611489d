// SPDX-License-Identifier: MIT
// The shortest scenario that breaks a promise.
#include "tests/simulation/simulated_run.h"

namespace dtool::simulation {

Scenario shortened(Scenario scenario) {
  const auto is_broken = [](const Scenario& each) {
    return simulate(each, Tell::nothing).broken.has_value();
  };
  for (bool is_shorter = true; is_shorter;) {
    is_shorter = false;
    for (std::size_t i = 0; i < scenario.faults.size() && !is_shorter; ++i) {
      Scenario less = scenario;
      less.faults.erase(less.faults.begin() + static_cast<std::ptrdiff_t>(i));
      is_shorter = is_broken(less);
      if (is_shorter) scenario = less;
    }
    if (!is_shorter && scenario.kill) {
      Scenario less = scenario;
      less.kill.reset();
      is_shorter = is_broken(less);
      if (is_shorter) scenario = less;
    }
  }
  return scenario;
}

}  // namespace dtool::simulation
