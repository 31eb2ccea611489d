// SPDX-License-Identifier: MIT
// simulate_runs FIRST COUNT: whole runs, and commands that start, kill and resume runs, with the
// seeds from FIRST on. Of one that breaks a promise it prints the shortest scenario that does, and
// its story.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/simulation/launches.h"
#include "tests/simulation/simulated_run.h"

namespace {

void tell_launches(std::uint64_t seed) {
  using namespace dtool::simulation;
  const LaunchScenario shortest = shortened(make_launches(seed));
  std::string story;
  simulate(shortest, &story);
  std::printf("%s%s\n", to_text(shortest).c_str(), story.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dtool::simulation;
  const std::uint64_t first = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000;
  constexpr int kMostTold = 12;
  const auto began = std::chrono::steady_clock::now();
  int broken = 0;
  double machines = 0;
  double faults = 0;
  double events = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Scenario scenario = make_scenario(seed);
    const Outcome outcome = simulate(scenario, Tell::nothing);
    machines += scenario.places;
    faults += static_cast<double>(scenario.faults.size());
    events += outcome.events;
    if (const auto broken_launch = simulate(make_launches(seed));
        broken_launch && ++broken <= kMostTold)
      tell_launches(seed);
    if (!outcome.broken || ++broken > kMostTold) continue;
    const Scenario shortest = shortened(scenario);
    std::printf("%s%s\nbroken: %s\n\n", to_text(shortest).c_str(),
                simulate(shortest, Tell::story).story.c_str(), outcome.broken->c_str());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const auto runs = static_cast<double>(count);
  std::printf(
      "%d of %.0f runs broke a promise; %.0f runs a minute; on average %.1f machines, %.1f "
      "faults, %.0f events\n",
      broken, runs, 60 * runs / took.count(), machines / runs, faults / runs, events / runs);
  return broken == 0 ? 0 : 1;
}
