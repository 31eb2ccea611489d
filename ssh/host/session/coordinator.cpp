// SPDX-License-Identifier: MIT
#include "ssh/host/session/coordinator.h"

#include <algorithm>
#include <cassert>

#include "ssh/host/child.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

// For others' reports: which failure was first is not always which was heard first.
constexpr Time kForOtherFailures = 500ms;
// The same if only aftermath of a failure has been reported.
constexpr Time kForFirstCause = 3s;
constexpr Time kForGathering = 30s;
// A machine that has never been heard is hoped for so long.
constexpr Time kForSilentMachines = 120s;
constexpr Time kLongestTurn = 5s;
constexpr Time kBetweenSearches = 1s;

}  // namespace

Coordinator::Coordinator(const Supervision& settings, Time now)
    : settings_(settings),
      machines_(static_cast<std::size_t>(settings.places)),
      began_(now),
      looked_at_(now),
      listens_since_(now) {
  assert(settings.places > 0);
  for (int place = 0; place < settings.places; ++place) members_.push_back(place);
}

void Coordinator::take(int place, const Report& report, Time now) {
  if (place < 0 || place >= settings_.places) return;
  Machine& machine = machines_[static_cast<std::size_t>(place)];
  machine.heard = now;
  if (machine.report == report && !machine.is_lost) return;
  // Of a failure that is known the machine says the same again as it goes.
  const bool is_known =
      machine.report && machine.report->attempt == attempt_ && has_failed(machine.report->standing);
  machine.report = report;
  machine.is_lost = false;
  // With a text, gone means that a machine gave up by itself, before there was a decision; perhaps
  // before it had heard of this attempt.
  const bool gave_up = phase_ == Phase::running && report.standing == Standing::gone &&
                       !report.text.empty() && !is_known &&
                       std::ranges::find(members_, place) != members_.end();
  if (report.attempt != attempt_ && !gave_up) return;
  if (has_failed(report.standing) || gave_up)
    add_failure({report.standing, report.code, report.text, {place, report.rank}}, now);
}

void Coordinator::add_failure(const Failure& failure, Time now) {
  if (failures_.empty()) first_failure_at_ = now;
  failures_.push_back(failure);
}

/// Whether that machine is watched: it has reported, and has not ended. (One that never reported
/// may be behind a firewall.) A machine that has ended says no more than that; one that has not
/// begun this attempt may have died between two.
bool Coordinator::is_watched(int place) const {
  const Machine& machine = machines_[static_cast<std::size_t>(place)];
  if (place == 0 || machine.is_lost || !machine.heard) return false;
  return machine.report->attempt != attempt_ || machine.report->standing == Standing::running;
}

/// Whether no other machine is heard any more, and there are several: then the way to this one may
/// be cut.
bool Coordinator::hears_nobody(Time now) const {
  int silent = 0;
  for (const int place : members_) {
    const Machine& machine = machines_[static_cast<std::size_t>(place)];
    if (place == 0 || !machine.heard) continue;
    if (silence_of(machine, now) <= 2 * time_between_signs(settings_)) return false;
    // One that has ended gives signs of life until it hears that all have.
    if (!machine.is_lost && machine.report->standing != Standing::gone) ++silent;
  }
  return silent > 1;
}

void Coordinator::find_lost(Time now) {
  if (searched_at_ && now - *searched_at_ < kBetweenSearches) return;
  searched_at_ = now;
  const bool hears_none = hears_nobody(now);
  for (const int place : members_) {
    Machine& machine = machines_[static_cast<std::size_t>(place)];
    if (!is_watched(place) || silence_of(machine, now) <= settings_.lost_after) continue;
    machine.is_lost = true;
    const int named = hears_none ? 0 : place;
    const std::string who = "machine " + std::to_string(named) + " (" +
                            settings_.hosts[static_cast<std::size_t>(named)] + ")";
    const std::string since = std::to_string(settings_.lost_after.count()) + " s";
    const std::string text = hears_none ? who + " has had no sign of life of any other for " +
                                              since + ": it was cut off, or all others were lost"
                                        : who + " was lost: no sign of life for " + since;
    add_failure({Standing::failed, 1, text, {named}}, now);
  }
}

// While this process was frozen, or busy with ending processes, it heard no machine.
void Coordinator::forgive_own_silence(Time now) {
  if (now - looked_at_ > kLongestTurn) listens_since_ = now;
  looked_at_ = now;
}

/// For how long that machine, which has reported, has given no sign of life.
Time Coordinator::silence_of(const Machine& machine, Time now) const {
  return now - std::max(*machine.heard, listens_since_);
}

/// Whether it may be the first: it is not known to follow from another failure, and its machine did
/// not give up, as one does that has lost its peers.
bool Coordinator::is_first_hand(const Failure& failure) {
  return failure.standing != Standing::followed && failure.standing != Standing::gone;
}

/// Whether all members stand so in this attempt; those aside that are lost or gone (perhaps before
/// they heard of this attempt), or have not been heard for too long to hope.
bool Coordinator::all_have(Standing standing, Time now) const {
  return std::ranges::all_of(members_, [&](int place) {
    const Machine& machine = machines_[static_cast<std::size_t>(place)];
    if (!machine.report) return now - began_ > kForSilentMachines;
    if (machine.is_lost || machine.report->standing == Standing::gone) return true;
    return machine.report->attempt == attempt_ && machine.report->standing == standing;
  });
}

bool Coordinator::has_ended_well(std::optional<int> place) const {
  if (!place) return false;
  const auto& report = machines_[static_cast<std::size_t>(*place)].report;
  return report && report->attempt == attempt_ && report->standing == Standing::ended;
}

/// Or has not begun this attempt, as far as is known.
bool Coordinator::is_any_running() const {
  return std::ranges::any_of(members_, [&](int place) {
    const Machine& machine = machines_[static_cast<std::size_t>(place)];
    if (machine.is_lost) return false;
    return !machine.report || machine.report->attempt != attempt_ ||
           machine.report->standing == Standing::running;
  });
}

/// Whether a machine has given no sign of life since the first failure was heard: its sign will
/// come, or its own failure, or it is lost.
bool Coordinator::is_any_silent() const {
  return std::ranges::any_of(members_, [&](int place) {
    return is_watched(place) &&
           *machines_[static_cast<std::size_t>(place)].heard < first_failure_at_;
  });
}

bool Coordinator::has_heard_enough(Time now) const {
  if (!is_any_running()) return true;
  if (std::ranges::any_of(failures_, is_first_hand))
    return now - first_failure_at_ >= kForOtherFailures;
  return now - first_failure_at_ >= kForFirstCause && !is_any_silent();
}

/// The first failure is the cause, unless a process was killed at about that time: being killed
/// does not follow from others' failures. A machine that gave up comes after those that failed: it
/// may have lost its peers. A failure that certainly follows from another one is the cause only if
/// nothing else is known, not even a stopped process.
Coordinator::Failure Coordinator::find_cause() const {
  for (const Failure& each : failures_) {
    if (each.code == kKilled) return each;
  }
  if (const auto first = std::ranges::find_if(failures_, is_first_hand); first != failures_.end())
    return *first;
  for (const Failure& each : failures_) {
    if (each.standing != Standing::followed) return each;
  }
  for (const int place : members_) {
    const auto& report = machines_[static_cast<std::size_t>(place)].report;
    if (report && report->attempt == attempt_ && report->standing == Standing::running &&
        !report->text.empty())
      return {Standing::failed, 1, report->text, {place, report->rank}};
  }
  return failures_.front();
}

Decision Coordinator::judge(Time now) {
  assert(phase_ == Phase::running && !failures_.empty());
  const Failure cause = find_cause();
  const bool is_mistake = cause.standing == Standing::mistaken;
  Decision decision{attempt_, Verb::end, {}, cause.text, cause.place};
  if (attempt_ < settings_.max_restarts && !is_mistake) {
    phase_ = Phase::gathering;
    gathering_since_ = now;
    decision.verb = Verb::gather;
  } else {
    phase_ = Phase::over;
  }
  failures_.clear();
  return decision;
}

Decision Coordinator::begin_next_attempt() {
  assert(phase_ == Phase::gathering && attempt_ < settings_.max_restarts);
  std::erase_if(members_, [this](int place) {
    const Machine& machine = machines_[static_cast<std::size_t>(place)];
    const bool answered = !machine.is_lost && machine.report &&
                          machine.report->attempt == attempt_ &&
                          machine.report->standing == Standing::stopped;
    return !answered;
  });
  failures_.clear();
  for (Machine& machine : machines_) machine.is_lost = false;
  phase_ = Phase::running;
  ++attempt_;
  return {attempt_, Verb::run, members_, {}};
}

std::optional<Decision> Coordinator::decide(Time now) {
  forgive_own_silence(now);
  switch (phase_) {
    case Phase::running:
      find_lost(now);
      if (has_ended_well(settings_.ends_with)) {
        phase_ = Phase::over;
        return Decision{attempt_, Verb::finish, {}, {}};
      }
      if (!failures_.empty()) {
        if (has_heard_enough(now)) return judge(now);
      } else if (all_have(Standing::ended, now)) {
        phase_ = Phase::over;
        return Decision{attempt_, Verb::done, {}, {}};
      }
      break;
    case Phase::gathering:
      if (all_have(Standing::stopped, now) || now - gathering_since_ > kForGathering)
        return begin_next_attempt();
      break;
    case Phase::over:
      break;
  }
  return std::nullopt;
}

}  // namespace dtool::host
