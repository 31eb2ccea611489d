// SPDX-License-Identifier: MIT
// What a run promises (docs/testing.md), as the simulated world checks it.
#include <algorithm>
#include <utility>

#include "ssh/host/child.h"
#include "tests/simulation/world.h"

namespace dtool::simulation {
namespace {

// Until all machines have connected again with a machine 0 that was cut off.
constexpr Time kAfterACut = 10s;

}  // namespace

void World::check_old_attempts(int attempt) {
  for (const auto& host : hosts_) {
    if (!host->runs() || host->attempt() >= attempt ||
        now_ < host->frozen_until + Time(scenario_.lost_after) + 20s)
      continue;
    // One that machine 0 never answered goes on by itself: there may be a firewall in between.
    if (host->has_mark || (host->place != 0 && !host->was_answered)) continue;
    breaks("machine " + std::to_string(host->place) + " still runs attempt " +
           std::to_string(host->attempt()) + " long after attempt " + std::to_string(attempt) +
           " began");
  }
}

/// A failure is found if machine 0 hears of it, or misses the machine.
void World::note_root(int place, bool can_be_found, bool lasts, int code) {
  const SimulatedHost& host = *hosts_[static_cast<std::size_t>(place)];
  const SimulatedHost& first = *hosts_[0];
  const bool is_heard = heard_.contains(place);
  const bool is_looked_at =
      first.listens() && !first.has_mark && now_ >= first.cut_until && now_ >= first.frozen_until;
  roots_[attempt_].push_back(
      {place, can_be_found && is_heard && is_looked_at && host.has_session() && !host.has_mark,
       lasts, now_, code});
}

/// Whether machine 0 knows of each machine of the attempt that it has stopped, or was lost.
bool World::have_all_answered() const {
  return std::ranges::all_of(members_, [this](int place) {
    const auto report = heard_.find(place);
    if (report == heard_.end())
      return decision_.cause_place && decision_.cause_place->machine == place;
    return report->second.standing == Standing::gone ||
           (report->second.attempt == decision_.attempt &&
            report->second.standing == Standing::stopped);
  });
}

/// The next attempt begins once all have answered, with all that could.
void World::check_members(const Decision& decision) {
  const SimulatedHost& first = *hosts_[0];
  if (first.has_mark || !first.is_undisturbed()) return;
  if (all_answered_at_ && now_ - std::max(*all_answered_at_, first.busy_until) > 2s)
    breaks("the next attempt waits for machines that have answered");
  for (const int place : members_) {
    const SimulatedHost& host = *hosts_[static_cast<std::size_t>(place)];
    if (host.is_undisturbed() && host.has_whole_session() && !host.is_going() && !host.was_killed &&
        now_ - gathering_since_ >= 29s &&
        std::ranges::find(decision.places, place) == decision.places.end())
      breaks("machine " + std::to_string(place) + " is well, and left out");
  }
}

/// An attempt ends because of one of its own machines; where a process was killed first, of that.
void World::check_cause(const Decision& decision) {
  const int named = decision.cause_place->machine;
  if (std::ranges::find(members_, named) == members_.end())
    breaks("an attempt ends because of machine " + std::to_string(named) + ", which is not in it");
  const auto& roots = roots_[attempt_];
  const bool lasts = std::ranges::any_of(roots_, [](const auto& each) {
    return std::ranges::any_of(each.second, [](const Root& root) { return root.lasts; });
  });
  if (lasts || decision.attempt != attempt_ || roots.size() != 1 || scenario_.latency > 200ms)
    return;
  const Root& root = roots.front();
  const SimulatedHost& host = *hosts_[static_cast<std::size_t>(root.place)];
  if (root.code != host::kKilled || !root.can_be_found || !host.is_undisturbed() ||
      host.busy_until > root.at || hosts_[0]->busy_until > root.at)
    return;
  if (named != root.place)
    breaks("machine " + std::to_string(root.place) + ", where a process was killed, is not named");
}

/// Machine 0 decides in time once a machine that it hears is gone for good.
void World::expect_decision(int place) {
  const SimulatedHost& host = *hosts_[static_cast<std::size_t>(place)];
  const auto report = heard_.find(place);
  const auto is_watching = [this] {
    const SimulatedHost& first = *hosts_[0];
    return first.is_undisturbed() && first.has_whole_session() && !first.is_going();
  };
  if (place == 0 || report == heard_.end() || report->second.standing != Standing::running ||
      report->second.attempt != decision_.attempt || decision_.verb != Verb::run || !host.runs() ||
      !host.is_undisturbed() || !is_watching())
    return;
  at(now_ + Time(scenario_.lost_after) + 8s + 2 * scenario_.latency + scenario_.longest_stop,
     [this, is_watching, number = decisions_] {
       if (decisions_ == number && is_watching()) breaks("a machine's loss is found late");
     });
}

/// A machine that was cut off for a short while, and frozen for any, has not lost machine 0.
void World::check_loss(const SimulatedHost& host) {
  Time cut{0};
  for (const Fault& fault : scenario_.faults) {
    if (fault.place == host.place && fault.kind == Fault::Kind::host_cut) cut += fault.lasts;
  }
  const SimulatedHost& first = *hosts_[0];
  const Time lost_after = scenario_.lost_after;
  const std::string own = "machine " + std::to_string(host.place) + " (";
  const std::string& cause = host.notes.at("cause");
  const bool is_silence =
      cause.starts_with(own) && cause.find("had no answer from machine 0") != std::string::npos;
  const bool is_refusal = cause.starts_with("nothing listens") && !first.listens();
  if ((is_silence || is_refusal) && host.has_ended_well())
    breaks("machine " + std::to_string(host.place) +
           " ended well, and says that it lost machine 0");
  if (!is_silence || !first.is_undisturbed() || !first.has_whole_session() ||
      host.walled_until > 0s || cut > lost_after / 3 || scenario_.longest_stop > lost_after / 3)
    return;
  breaks("machine " + std::to_string(host.place) + " was frozen, and takes machine 0 for lost");
}

void World::note_cause(const SimulatedHost& host) {
  // What a machine says by itself, where it lost machine 0, is no claim about the others.
  if (host.place != 0) return check_loss(host);
  const auto place = host::parse_cause_place(
      host.notes.count(host::kCausePlaceFile) != 0 ? host.notes.at(host::kCausePlaceFile) : "");
  const std::string& cause = host.notes.at("cause");
  // Of one that lives, and has always been heard, it is never said. Where machine 0 was cut off,
  // at least two such machines that it had heard tell it so.
  const auto is_well = [](const SimulatedHost& each) {
    return each.place != 0 && each.has_session() && !each.has_mark && each.is_undisturbed();
  };
  const auto well = std::ranges::count_if(members_, [&](int each) {
    return heard_.contains(each) && is_well(*hosts_[static_cast<std::size_t>(each)]);
  });
  if (place && is_well(*hosts_[static_cast<std::size_t>(place->machine)]) &&
      cause.find("was lost: no sign of life") != std::string::npos &&
      (host.cut_until == 0s ||
       (well > 1 && (now_ < host.cut_until || now_ > host.cut_until + kAfterACut))))
    breaks("machine " + std::to_string(place->machine) + " is well, and taken for lost");
  auto roots = roots_[host.attempt()];
  if (place && std::ranges::count(plain_[host.attempt()], place->machine) != 0) return;
  for (const auto& [attempt, earlier] : roots_) {
    for (const Root& root : earlier) {
      if (root.lasts && attempt < host.attempt()) roots.push_back({root.place, false, true});
      // While machine 0 hears nothing, the others give up, and what they say comes in any order.
      if (root.lasts && root.place == 0) return;
    }
  }
  if (!place || roots.empty()) return;
  const auto is_of = [&](const Root& root) { return root.place == place->machine; };
  if (std::ranges::any_of(roots, is_of)) return;
  // Two machines lost at once look to machine 0 as if it were cut off itself.
  if (place->machine == 0 && host.notes.at("cause").find("cut off, or") != std::string::npos)
    return;
  // What comes late on a slow link was true when it was sent.
  if (scenario_.latency > 500ms) return;
  // Where the first failure could not be found, another one is taken for it.
  if (!roots.front().can_be_found) return;
  breaks("the cause is said to be on machine " + std::to_string(place->machine) +
         ", where nothing failed first");
}

/// What a session has written down is whole, or is not there. Of an exit code the first line
/// counts.
void World::check_records(const SimulatedHost& host) {
  for (const std::string& file : host.disk.list()) {
    std::string bytes = host.disk.read(file);
    if (file == "exit_code") bytes.resize(bytes.find('\n') + 1);
    const auto whole = host.written.find(file);
    if (whole != host.written.end() && !whole->second.contains(bytes))
      breaks("machine " + std::to_string(host.place) + "'s file " + file + " is half written");
  }
  if (host.is_alive && host.recorded && !host.disk.has("exit_code"))
    breaks("the end of machine " + std::to_string(host.place) + " is not on its disk");
}

void World::check_end() {
  for (const auto& host : hosts_) {
    check_records(*host);
    const std::string name = "machine " + std::to_string(host->place);
    if (!host->is_alive || host->frozen_until >= kForGood || host->has_mark) continue;
    if (host->has_session()) breaks("the session of " + name + " does not end");
    if (host->runs()) breaks("a script of " + name + " is left");
    // What is recorded as a good end was one.
    const auto code = host->exit_codes.find(host->attempt());
    const bool has_failed = code != host->exit_codes.end() && code->second != 0;
    if (host->recorded == 0 && has_failed && !scenario_.ends_with)
      breaks(name + " failed and recorded a good end");
  }
  if (!scenario_.faults.empty() || scenario_.kill) return;
  for (const auto& host : hosts_) {
    if (host->recorded != 0)
      breaks("nothing failed, and machine " + std::to_string(host->place) +
             " recorded no good end");
  }
}

}  // namespace dtool::simulation
