// SPDX-License-Identifier: MIT
#include "tests/simulation/scenario.h"

#include <algorithm>
#include <random>

namespace dtool::simulation {
namespace {

using namespace std::chrono_literals;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t from(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t count) { return from(1, count) == 1; }
  Time between(Time least, Time most) { return Time(from(least.count(), most.count())); }

 private:
  std::mt19937_64 engine_;
};

Fault make_fault(Dice& dice, const Scenario& scenario, Time latest) {
  Fault fault;
  fault.kind =
      dice.one_in(16) ? Fault::Kind::walled_off : static_cast<Fault::Kind>(dice.from(0, 5));
  fault.place = static_cast<int>(dice.from(0, scenario.places - 1));
  fault.at = dice.between(0s, latest);
  fault.code = dice.one_in(2) ? 137 : static_cast<int>(dice.from(1, 3));
  // Around the limits that matter: of one turn, of signs of life, of a loss.
  const Time lost = scenario.lost_after;
  const Time lengths[] = {100ms,     1s,   5s,        5001ms,   lost / 3,
                          lost - 1s, lost, lost + 1s, 2 * lost, kForGood};
  const Time length = lengths[dice.from(0, std::size(lengths) - 1)];
  fault.lasts = length == kForGood ? length : length + dice.between(0ms, 300ms);
  if (fault.kind == Fault::Kind::walled_off) {
    fault.at = 0ms;
    if (dice.one_in(2)) fault.lasts = kForGood;
  }
  return fault;
}

Fault make_fault_of_disk(Dice& dice, const Scenario& scenario) {
  Fault fault;
  fault.kind = dice.one_in(3) ? Fault::Kind::disk_full : Fault::Kind::power_lost;
  fault.place = static_cast<int>(dice.from(0, scenario.places - 1));
  // The sessions have begun; or they record their ends.
  fault.at = dice.one_in(2) ? 2s + dice.between(0s, scenario.duration * 3 / 2)
                            : scenario.duration + dice.between(0s, 5s);
  fault.lasts = dice.one_in(2) ? kForGood : dice.between(1s, 60s);
  if (fault.kind == Fault::Kind::power_lost)
    fault.code = dice.one_in(3) ? 0 : static_cast<int>(dice.from(1, 6));
  return fault;
}

std::string describe(const Fault& fault) {
  const std::string machine = "machine " + std::to_string(fault.place);
  const std::string lasts =
      fault.lasts == kForGood ? "for good" : "for " + std::to_string(fault.lasts.count()) + " ms";
  switch (fault.kind) {
    case Fault::Kind::rank_fails:
      return "a rank of " + machine + " ends with " + std::to_string(fault.code);
    case Fault::Kind::rank_stops:
      return "a rank of " + machine + " is stopped";
    case Fault::Kind::session_killed:
      return "the session of " + machine + " is killed";
    case Fault::Kind::host_dies:
      return machine + " dies";
    case Fault::Kind::host_freezes:
      return machine + " freezes " + lasts;
    case Fault::Kind::host_cut:
      return machine + " is cut off " + lasts;
    case Fault::Kind::walled_off:
      return machine + " is behind a firewall " + lasts;
    case Fault::Kind::disk_full:
      return "the disk of " + machine + " is full " + lasts;
    case Fault::Kind::power_lost:
      return "the power of " + machine + " fails" +
             (fault.code == 0 ? "" : " at its disk's step " + std::to_string(fault.code));
  }
  return {};
}

}  // namespace

Scenario make_scenario(std::uint64_t seed) {
  Dice dice(seed * 0x9e3779b97f4a7c15U + 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.places = static_cast<int>(dice.one_in(8) ? dice.from(17, 64) : dice.from(2, 14));
  scenario.max_restarts = dice.one_in(3) ? 0 : static_cast<int>(dice.from(1, 4));
  scenario.lost_after = std::chrono::seconds(dice.one_in(2) ? 60 : dice.from(10, 120));
  if (dice.one_in(10)) scenario.ends_with = static_cast<int>(dice.from(0, scenario.places - 1));
  scenario.duration = dice.between(2s, 120s);
  scenario.latency = dice.one_in(5) ? dice.between(1ms, 1500ms) : dice.between(1ms, 60ms);
  if (dice.one_in(3)) scenario.longest_stop = dice.between(0s, 15s);
  const auto faults = dice.one_in(12) ? 0 : dice.from(1, 6);
  // Often close together: what breaks one machine breaks others.
  const Time latest = dice.one_in(2) ? 3s : scenario.duration * 3 / 2;
  const Time first = dice.between(0s, scenario.duration);
  for (int i = 0; i < faults; ++i) {
    scenario.faults.push_back(make_fault(dice, scenario, latest));
    Fault& fault = scenario.faults.back();
    if (fault.kind == Fault::Kind::walled_off) continue;
    if (i > 0 && dice.one_in(4))
      fault.place = scenario.faults[static_cast<std::size_t>(i - 1)].place;
    if (scenario.max_restarts > 0 && dice.one_in(5)) {
      // What fails as an attempt begins, when the machines hear one decision after another.
      fault.attempt = static_cast<int>(dice.from(1, scenario.max_restarts));
      fault.at = dice.one_in(2) ? dice.between(0ms, 300ms) : dice.between(0s, 5s);
    } else {
      fault.at += latest == 3s ? first : 0s;
    }
  }
  if (dice.one_in(6)) {
    Kill kill{dice.between(0s, scenario.duration * 2), dice.between(0s, 10s), scenario.places,
              false};
    if (dice.one_in(3)) {
      kill.is_cut_off = true;
      kill.reaches = static_cast<int>(dice.from(0, scenario.places));
    }
    scenario.kill = kill;
  }
  if (dice.one_in(4)) scenario.faults.push_back(make_fault_of_disk(dice, scenario));
  return scenario;
}

std::string to_text(const Scenario& scenario) {
  std::string text = "seed " + std::to_string(scenario.seed) + ": " +
                     std::to_string(scenario.places) + " machines, max_restarts " +
                     std::to_string(scenario.max_restarts) + ", lost_after " +
                     std::to_string(scenario.lost_after.count()) + " s, an attempt takes " +
                     std::to_string(scenario.duration.count()) + " ms, a message up to " +
                     std::to_string(scenario.latency.count()) + " ms, a stop up to " +
                     std::to_string(scenario.longest_stop.count()) + " ms";
  if (scenario.ends_with) text += ", ends with machine " + std::to_string(*scenario.ends_with);
  text += "\n";
  for (const Fault& fault : scenario.faults)
    text += "  at " + std::to_string(fault.at.count()) + " ms of attempt " +
            std::to_string(fault.attempt) + " " + describe(fault) + "\n";
  if (scenario.kill)
    text += "  at " + std::to_string(scenario.kill->at.count()) + " ms dtool kill, grace " +
            std::to_string(scenario.kill->grace.count()) + " ms" +
            (scenario.kill->is_cut_off ? ", cut off after the marks on " +
                                             std::to_string(scenario.kill->reaches) + " machines"
                                       : "") +
            "\n";
  return text;
}

}  // namespace dtool::simulation
