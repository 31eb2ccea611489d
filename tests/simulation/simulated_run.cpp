// SPDX-License-Identifier: MIT
#include "tests/simulation/simulated_run.h"

#include <algorithm>
#include <utility>

#include "tests/simulation/world.h"

namespace dtool::simulation {
namespace {

constexpr Time kEnd = 6000s;  // a run that goes on then goes on for ever

}  // namespace

World::World(const Scenario& scenario, Tell tell)
    : scenario_(scenario),
      tells_(tell),
      engine_(scenario.seed),
      port_(static_cast<std::size_t>(scenario.places)) {
  for (int place = 0; place < scenario.places; ++place) {
    const double rate = 1 + (static_cast<double>(engine_() % 2001) - 1000) * 1e-6;
    const Time offset = random(0ms, 1'000'000s);
    hosts_.push_back(std::make_unique<SimulatedHost>(*this, place, scenario_, rate, offset));
    members_.push_back(place);
  }
}

bool World::is_cut(int place, Time time) const {
  return time < hosts_[static_cast<std::size_t>(place)]->cut_until;
}

/// What is sent while the way is cut arrives a while after it is mended, as TCP tries again.
void World::send(Message message, Towards towards) {
  const int to = towards == Towards::port ? 0 : message.place;
  const Time cut =
      std::max(hosts_[0]->cut_until, hosts_[static_cast<std::size_t>(message.place)]->cut_until);
  Time time = now_ + random(0ms, scenario_.latency);
  if (now_ < cut) {
    if (cut >= kForGood) return;
    time =
        cut + random(0ms, std::min<Time>(60s, (cut - now_) / 2)) + random(0ms, scenario_.latency);
  }
  Time& last = last_arrival_[{message.connection, towards}];
  last = time = std::max(time, last);
  at(time, [this, to, message = std::move(message), towards] {
    SimulatedHost& host = *hosts_[static_cast<std::size_t>(to)];
    if (!host.is_alive) return;
    if (is_cut(to, now_)) return send(message, towards);
    if (towards == Towards::link || host.listens()) return host.take(message);
    // The kernel says so, unless the whole machine stands still.
    if (now_ >= host.frozen_until)
      send_to_link({Message::Kind::refusal, message.place, message.connection});
  });
}

/// As ReportPort: the newest connection of a machine counts.
void World::deliver_to_port(const Message& message, host::Coordinator& coordinator, Time local) {
  const int place = message.place;
  std::optional<PortConnection>& connection = port_[static_cast<std::size_t>(place)];
  if (message.kind == Message::Kind::hello) {
    if (connection && connection->number > message.connection) return;
    connection.emplace(PortConnection{message.connection});
    send_to_link({Message::Kind::welcome, place, message.connection});
    return;
  }
  if (!connection || connection->number != message.connection) return;
  ++connection->taken;
  coordinator.take(place, message.report, local);
  Message answer{Message::Kind::answer, place, message.connection};
  answer.taken = connection->taken;
  if (connection->told != decisions_) answer.decision = decision_;
  connection->told = decisions_;
  send_to_link(std::move(answer));
}

void World::decide(const Decision& decision) {
  static constexpr const char* kVerbs[] = {"run", "gather", "end", "done", "finish"};
  tell("machine 0 decides: attempt " + std::to_string(decision.attempt) + " " +
       kVerbs[static_cast<int>(decision.verb)] + " " + decision.text);
  decision_ = decision;
  ++decisions_;
  if (decision.verb == Verb::gather) gathering_since_ = now_;
  if (decision.verb == Verb::run) {
    members_ = decision.places;
    for (const int place : members_) {
      const auto& since = hosts_[static_cast<std::size_t>(place)]->unreachable_since;
      if (place != 0 && since && *since < gathering_since_)
        breaks("an attempt begins with machine " + std::to_string(place) + ", which is gone");
    }
  }
  for (std::size_t place = 0; place < port_.size(); ++place) {
    std::optional<PortConnection>& connection = port_[place];
    if (!connection || connection->taken == 0) continue;  // a guest, before its first report
    connection->told = decisions_;
    Message answer{Message::Kind::answer, static_cast<int>(place), connection->number};
    answer.taken = connection->taken;
    answer.decision = decision_;
    send_to_link(std::move(answer));
  }
  if (decision.verb != Verb::done) return;
  for (const int place : members_) {
    const auto& codes = hosts_[static_cast<std::size_t>(place)]->exit_codes;
    const auto code = codes.find(decision.attempt);
    if (code != codes.end() && code->second != 0)
      breaks("a run counts as done although machine " + std::to_string(place) + " failed");
  }
}

void World::begins(const SimulatedHost& host, int attempt, const std::vector<int>& places) {
  std::string names;
  for (const int place : places) names += " " + std::to_string(place);
  tell("h" + std::to_string(host.place) + " begins attempt " + std::to_string(attempt) + names);
  if (attempt <= attempt_) return;
  attempt_ = attempt;
  progress_ = stalled_ = 0ms;
  is_program_over_ = false;
  // A machine that was cut off learns by its own clock that it is.
  for (int i = 0; i < 10; ++i)
    at(now_ + Time(scenario_.lost_after) + 45s + i * 50s,
       [this, attempt] { check_old_attempts(attempt); });
}

void World::check_old_attempts(int attempt) {
  for (const auto& host : hosts_) {
    if (!host->runs() || host->attempt() >= attempt ||
        now_ < host->frozen_until + Time(scenario_.lost_after) + 20s)
      continue;
    // One that machine 0 never answered goes on by itself: there may be a firewall in between.
    const auto contact = host->notes.find("supervision");
    const bool was_answered = host->place == 0 || contact != host->notes.end();
    if (host->has_mark || !was_answered) continue;
    breaks("machine " + std::to_string(host->place) + " still runs attempt " +
           std::to_string(host->attempt()) + " long after attempt " + std::to_string(attempt) +
           " began");
  }
}

void World::ends(const SimulatedHost& host, int code, bool by_itself) {
  tell("h" + std::to_string(host.place) + ": the script ends with " + std::to_string(code) +
       (by_itself ? "" : ", since it was ended"));
  if (code == 0 || host.attempt() != attempt_) return;
  is_program_over_ = true;
  // The others lose their peer: most fail, some hang.
  const int attempt = attempt_;
  for (const auto& other : hosts_) {
    if (!other->runs() || other->attempt() != attempt || one_in(4)) continue;
    SimulatedHost* victim = other.get();
    at(now_ + random(20ms, 4s), [victim, attempt] {
      if (victim->attempt() == attempt) victim->end_script(1, true);
    });
  }
}

bool World::is_program_whole() const {
  return !is_program_over_ && std::ranges::all_of(members_, [this](int place) {
    const SimulatedHost& host = *hosts_[static_cast<std::size_t>(place)];
    return host.runs() && host.attempt() == attempt_ && now_ >= host.frozen_until &&
           !is_cut(place, now_);
  });
}

/// The program goes on while all its machines run, and talk with each other. What waits in it for
/// another machine gives up in the end.
void World::advance_program() {
  constexpr Time kStep = 500ms;
  constexpr Time kProgramsPatience = 600s;
  at(now_ + kStep, [this] { advance_program(); });
  if (!is_program_whole()) {
    stalled_ += kStep;
    if (stalled_ < kProgramsPatience) return;
    stalled_ = 0ms;
    for (const auto& host : hosts_) {
      if (now_ >= host->frozen_until) host->end_script(1, true);
    }
    return;
  }
  stalled_ = 0ms;
  progress_ += kStep;
  if (progress_ < scenario_.duration) return;
  is_program_over_ = true;
  const int attempt = attempt_;
  for (const int place : members_) {
    SimulatedHost* host = hosts_[static_cast<std::size_t>(place)].get();
    at(now_ + random(0ms, 2s), [host, attempt] {
      if (host->attempt() == attempt) host->end_script(0, false);
    });
  }
}

/// A failure is found if machine 0 hears of it, or misses the machine.
void World::note_root(int place, bool can_be_found, bool lasts) {
  const SimulatedHost& host = *hosts_[static_cast<std::size_t>(place)];
  const SimulatedHost& first = *hosts_[0];
  const std::optional<PortConnection>& connection = port_[static_cast<std::size_t>(place)];
  const bool is_heard = place == 0 || (connection && connection->taken > 0);
  const bool is_looked_at =
      first.listens() && !first.has_mark && now_ >= first.cut_until && now_ >= first.frozen_until;
  roots_[attempt_].push_back(
      {place, can_be_found && is_heard && is_looked_at && host.has_session() && !host.has_mark,
       lasts});
}

void World::happen(const Fault& fault) {
  SimulatedHost& host = *hosts_[static_cast<std::size_t>(fault.place)];
  if (!host.is_alive) return;
  const Time until = fault.lasts == kForGood ? kForGood : now_ + fault.lasts;
  tell("FAULT of kind " + std::to_string(static_cast<int>(fault.kind)) + " on h" +
       std::to_string(fault.place));
  switch (fault.kind) {
    case Fault::Kind::rank_fails:
      if (!host.runs()) return;
      note_root(fault.place, true, false);
      host.end_script(fault.code, false);
      break;
    case Fault::Kind::rank_stops:
      if (!host.runs()) return;
      note_root(fault.place, true, false);
      is_program_over_ = is_program_over_ || host.attempt() == attempt_;
      host.stop_rank();
      break;
    case Fault::Kind::session_killed:
      if (!host.has_session()) return;
      note_root(fault.place, fault.place != 0, true);
      host.kill_session();
      break;
    case Fault::Kind::host_dies:
      note_root(fault.place, true, true);
      if (host.runs() && host.attempt() == attempt_) is_program_over_ = true;
      host.is_alive = false;
      if (!host.unreachable_since) host.unreachable_since = now_;
      break;
    case Fault::Kind::host_freezes:
      note_root(fault.place, false, true);
      host.frozen_until = std::max(host.frozen_until, until);
      if (until >= kForGood && !host.unreachable_since) host.unreachable_since = now_;
      break;
    case Fault::Kind::host_cut:
      note_root(fault.place, false, true);
      host.cut_until = std::max(host.cut_until, until);
      if (until >= kForGood && !host.unreachable_since) host.unreachable_since = now_;
      break;
  }
}

void World::note_cause(const SimulatedHost& host) {
  // What a machine says by itself, where it lost machine 0, is no claim about the others.
  if (host.place != 0) return;
  const auto place = host::parse_cause_place(
      host.notes.count(host::kCausePlaceFile) != 0 ? host.notes.at(host::kCausePlaceFile) : "");
  const std::string& cause = host.notes.at("cause");
  // Of one that lives, and has always been heard, it is never said. Where machine 0 was cut off,
  // at least two such machines tell it so.
  const auto is_well = [](const SimulatedHost& each) {
    return each.place != 0 && each.has_session() && !each.has_mark && each.cut_until == 0s &&
           each.frozen_until == 0s;
  };
  const auto well = std::ranges::count_if(
      members_, [&](int each) { return is_well(*hosts_[static_cast<std::size_t>(each)]); });
  if (place && is_well(*hosts_[static_cast<std::size_t>(place->machine)]) &&
      cause.find("was lost: no sign of life") != std::string::npos &&
      (host.cut_until == 0s || well > 1))
    breaks("machine " + std::to_string(place->machine) + " is well, and taken for lost");
  auto roots = roots_[host.attempt()];
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
  if (std::ranges::none_of(roots, [](const Root& root) { return root.can_be_found; })) return;
  breaks("the cause is said to be on machine " + std::to_string(place->machine) +
         ", where nothing failed first");
}

void World::check_end() {
  for (const auto& host : hosts_) {
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

Outcome World::run() {
  for (const auto& host : hosts_) {
    SimulatedHost* each = host.get();
    at(random(0ms, 2s), [each] { each->begin(); });
  }
  for (const Fault& fault : scenario_.faults) at(fault.at, [this, fault] { happen(fault); });
  if (scenario_.kill) {
    const Kill kill = *scenario_.kill;
    for (int place = 0; place < kill.reaches; ++place) {
      SimulatedHost* host = hosts_[static_cast<std::size_t>(place)].get();
      const Time marked = kill.at + random(0ms, 1s);
      at(marked, [host] { host->has_mark = true; });
      if (!kill.is_cut_off) at(marked + kill.grace, [host] { host->kill_all(); });
    }
  }
  advance_program();
  while (!events_.empty() && events_.top().time < kEnd && !broken_) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    ++count_;
    event.action();
    const bool is_over = std::ranges::none_of(
        hosts_, [](const auto& each) { return each->has_session() || each->runs(); });
    if (is_over && now_ > 5s) break;
  }
  if (!broken_) check_end();
  return {broken_, std::move(story_), count_};
}

Outcome simulate(const Scenario& scenario, Tell tell) {
  return World(scenario, tell).run();
}

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
