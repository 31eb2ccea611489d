// SPDX-License-Identifier: MIT
// Launches and faults out of a seed, in words, and shortened.
#include <cstddef>
#include <random>

#include "tests/simulation/launches.h"

namespace dtool::simulation {

LaunchScenario make_launches(std::uint64_t seed) {
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15U + 2);
  const auto from = [&engine](int least, int most) {
    return least + static_cast<int>(engine() % static_cast<std::uint64_t>(most - least + 1));
  };
  LaunchScenario scenario;
  scenario.seed = seed;
  scenario.hosts = from(2, 6);
  scenario.launches.push_back({Launch::Kind::start, Time(0), from(1, 4) == 1 ? from(0, 4) : 100});
  Time at{0};
  for (int i = from(1, 5); i > 0; --i) {
    at += Time(from(0, from(1, 2) == 1 ? 5'000 : 60'000));
    scenario.launches.push_back({from(1, 2) == 1 ? Launch::Kind::kill : Launch::Kind::resume, at,
                                 from(1, 3) == 1 ? from(0, 5) : 100, from(1, 3) == 1});
  }
  for (int i = from(0, 4); i > 0; --i)
    scenario.faults.push_back({static_cast<HostFault::Kind>(from(0, 5)),
                               from(0, scenario.hosts - 1),
                               Time(from(0, from(1, 2) == 1 ? 5'000 : 120'000))});
  return scenario;
}

std::string to_text(const LaunchScenario& scenario) {
  static constexpr const char* kLaunches[] = {"run", "kill", "resume"};
  static constexpr const char* kFaults[] = {"reboots",           "is away",           "waits",
                                            "loses its session", "loses its folders", "is slow"};
  std::string text = "launches of seed " + std::to_string(scenario.seed) + ": " +
                     std::to_string(scenario.hosts) + " hosts\n";
  for (const Launch& each : scenario.launches)
    text += "  at " + std::to_string(each.at.count()) + " ms " +
            kLaunches[static_cast<int>(each.kind)] + (each.forgets ? " --delete" : "") +
            (each.steps < 100 ? ", killed after step " + std::to_string(each.steps) : "") + "\n";
  for (const HostFault& each : scenario.faults)
    text += "  at " + std::to_string(each.at.count()) + " ms h" + std::to_string(each.host) + " " +
            kFaults[static_cast<int>(each.kind)] + "\n";
  return text;
}

LaunchScenario shortened(LaunchScenario scenario) {
  const auto drop_one = [&scenario](auto list) {
    for (std::size_t i = 0; i < (scenario.*list).size(); ++i) {
      LaunchScenario less = scenario;
      (less.*list).erase((less.*list).begin() + static_cast<std::ptrdiff_t>(i));
      if (!simulate(less)) continue;
      scenario = less;
      return true;
    }
    return false;
  };
  while (drop_one(&LaunchScenario::faults) || drop_one(&LaunchScenario::launches)) {
  }
  return scenario;
}

}  // namespace dtool::simulation
