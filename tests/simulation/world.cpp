// SPDX-License-Identifier: MIT
// The world of a simulated run: its messages, its program, its faults, and the run itself.
#include <algorithm>
#include <utility>

#include "ssh/host/child.h"
#include "tests/simulation/world.h"

namespace dtool::simulation {
namespace {

constexpr Time kEnd = 6000s;  // a run that goes on then goes on for ever

}  // namespace

World::World(const Scenario& scenario, Tell tell)
    : scenario_(scenario), tells_(tell), engine_(scenario.seed) {
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

/// What is sent while the way is cut arrives a while after it is mended, as TCP tries again: the
/// messages of a connection at once.
void World::send(Message message, Towards towards) {
  const int to = towards == Towards::port ? 0 : message.place;
  const Time cut =
      std::max(hosts_[0]->cut_until, hosts_[static_cast<std::size_t>(message.place)]->cut_until);
  const SimulatedHost& machine = *hosts_[static_cast<std::size_t>(message.place)];
  if (now_ < machine.walled_until) return;
  const Time sent = std::max(now_, towards == Towards::port ? machine.busy_until : now_);
  Time& last = last_arrival_[{message.connection, towards}];
  Time time = sent + random(0ms, scenario_.latency);
  if (now_ < cut) {
    if (cut >= kForGood) return;
    time += cut - now_;
    if (last < cut) time += random(0ms, std::min<Time>(60s, (cut - now_) / 2));
  }
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

/// As ReportPort: a connection is a guest until a machine has proven itself by its first report.
void World::deliver_to_port(const Message& message, host::Coordinator& coordinator, Time local) {
  const int place = message.place;
  const int connection = message.connection;
  if (message.kind == Message::Kind::hello) {
    guests_.insert(connection);
    send_to_link({Message::Kind::welcome, place, connection});
    return;
  }
  if (guests_.erase(connection) != 0) {
    const auto old = port_.admit(place, connection);
    if (old) send_to_link({Message::Kind::refusal, place, *old});
    places_[connection] = place;
  }
  if (!port_.counts(connection)) return;
  port_.take(connection);
  coordinator.take(place, message.report, local);
  hear(place, message.report);
  answer(connection);
}

void World::answer(int connection) {
  Message message{Message::Kind::answer, places_.at(connection), connection};
  message.answer = port_.answer(connection);
  send_to_link(std::move(message));
}

void World::decide(const Decision& decision) {
  static constexpr const char* kVerbs[] = {"run", "gather", "end", "done", "finish"};
  tell("machine 0 decides: attempt " + std::to_string(decision.attempt) + " " +
       kVerbs[static_cast<int>(decision.verb)] + " " + decision.text);
  decision_ = decision;
  ++decisions_;
  if (decision.cause_place) check_cause(decision);
  if (decision.verb == Verb::gather) {
    gathering_since_ = now_;
    all_answered_at_.reset();
    const int named = decision.cause_place->machine;
    const bool is_back = now_ - heard_at_[named] < Time(scenario_.lost_after) / 2;
    if (decision.text.find(" was lost: ") != std::string::npos && !is_back) heard_.erase(named);
    if (have_all_answered()) all_answered_at_ = now_;
    at(now_ + 30s + 16s, [this, number = decisions_] {
      const SimulatedHost& first = *hosts_[0];
      if (decisions_ == number && first.has_whole_session() && !first.is_going() &&
          !first.has_mark && first.frozen_until < gathering_since_)
        breaks("the next attempt is late");
    });
  }
  if (decision.verb == Verb::run) {
    check_members(decision);
    members_ = decision.places;
    for (const int place : members_) {
      const auto& since = hosts_[static_cast<std::size_t>(place)]->unreachable_since;
      if (place != 0 && since && *since < gathering_since_)
        breaks("an attempt begins with machine " + std::to_string(place) + ", which is gone");
    }
  }
  port_.decide(decision);
  for (const int each : port_.connections()) answer(each);
  if (decision.verb != Verb::done) return;
  for (const int place : members_) {
    const auto& codes = hosts_[static_cast<std::size_t>(place)]->exit_codes;
    const auto code = codes.find(decision.attempt);
    if (code != codes.end() && code->second != 0 && heard_.contains(place))
      breaks("a run counts as done although machine " + std::to_string(place) + " failed");
  }
}

void World::begins(const SimulatedHost& host, int attempt, const std::vector<int>& places) {
  std::string names;
  for (const int place : places) names += " " + std::to_string(place);
  tell("h" + std::to_string(host.place) + " begins attempt " + std::to_string(attempt) + names);
  if (attempt <= attempt_) return;
  attempt_ = attempt;
  for (const Fault& fault : scenario_.faults) {
    if (fault.attempt == attempt) at(now_ + fault.at, [this, fault] { happen(fault); });
  }
  progress_ = stalled_ = 0ms;
  is_program_over_ = false;
  // A machine that was cut off learns by its own clock that it is.
  for (int i = 0; i < 10; ++i)
    at(now_ + Time(scenario_.lost_after) + 45s + i * 50s,
       [this, attempt] { check_old_attempts(attempt); });
}

void World::ends(const SimulatedHost& host, int code, bool by_itself) {
  tell("h" + std::to_string(host.place) + ": the script ends with " + std::to_string(code) +
       (by_itself ? "" : ", since it was ended"));
  if (by_itself && host.walled_until >= kForGood) {
    // For a decision or an answer, and for the last words.
    const Time patience = (code == 0 ? 120s : 10s) + 15s + 3s;
    at(now_ + patience + patience / 500, [this, &host] {
      if (host.has_whole_session() && !host.has_mark && host.frozen_until == 0s)
        breaks("machine " + std::to_string(host.place) + ", which is alone, ends late");
    });
  }
  if (code == 0 || host.attempt() != attempt_) return;
  is_program_over_ = true;
  // The others lose their peer: most fail, some hang.
  const int attempt = attempt_;
  for (const auto& other : hosts_) {
    if (!other->runs() || other->attempt() != attempt || one_in(4)) continue;
    SimulatedHost* victim = other.get();
    const bool is_plain = roots_[attempt].size() == 1 && plain_[attempt].empty() &&
                          one_in(code == host::kKilled ? 3 : 12);
    at(now_ + (is_plain ? random(1ms, 20ms) : random(20ms, 4s)), [this, victim, attempt, is_plain] {
      if (victim->attempt() != attempt || !victim->runs()) return;
      if (is_plain) plain_[attempt].push_back(victim->place);
      victim->end_script(1, !is_plain);
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

void World::reset(int connection) {
  if (one_in(2)) hosts_[0]->drop(connection);
}

void World::hear(int place, const Report& report) {
  heard_[place] = report;
  heard_at_[place] = now_;
  if (decision_.verb != Verb::gather) return;
  if (!have_all_answered())
    all_answered_at_.reset();
  else if (!all_answered_at_)
    all_answered_at_ = now_;
}

void World::die(SimulatedHost& host) {
  note_root(host.place, !is_program_over_, true);
  expect_decision(host.place);
  if (host.runs() && host.attempt() == attempt_) is_program_over_ = true;
  host.is_alive = false;
  if (!host.unreachable_since) host.unreachable_since = now_;
}

void World::lose_power(SimulatedHost& host) {
  tell("h" + std::to_string(host.place) + " loses its power");
  die(host);
  host.disk.lose_power(engine_);
  check_records(host);
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
      note_root(fault.place, true, false, fault.code);
      host.end_script(fault.code, false);
      break;
    case Fault::Kind::rank_stops:
      if (!host.runs()) return;
      note_root(fault.place, false, false);  // it is noticed if its script goes on for a second
      is_program_over_ = is_program_over_ || host.attempt() == attempt_;
      host.stop_rank();
      break;
    case Fault::Kind::session_killed:
      if (!host.has_session()) return;
      note_root(fault.place, fault.place != 0, true);
      host.kill_session();
      break;
    case Fault::Kind::host_dies:
      die(host);
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
    case Fault::Kind::walled_off:
      if (fault.place != 0) host.walled_until = std::max(host.walled_until, until);
      break;
    case Fault::Kind::disk_full:
      host.disk.set_full(true);
      at(until, [&host] { host.disk.set_full(false); });
      break;
    case Fault::Kind::power_lost:
      if (fault.code == 0) return lose_power(host);
      host.disk.fail_at_step(fault.code);
      break;
  }
}

Outcome World::run() {
  for (const auto& host : hosts_) {
    SimulatedHost* each = host.get();
    at(random(0ms, 2s), [each] { each->begin(); });
  }
  for (const Fault& fault : scenario_.faults) {
    if (fault.attempt == 0) at(fault.at, [this, fault] { happen(fault); });
  }
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
    try {
      event.action();
    } catch (const PowerLoss& loss) {
      lose_power(*hosts_[static_cast<std::size_t>(loss.place)]);
    }
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

}  // namespace dtool::simulation
