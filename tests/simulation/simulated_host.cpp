// SPDX-License-Identifier: MIT
// A host of the simulation: its script and session, its ranks, and what its disk keeps.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "ssh/host/session/guard.h"
#include "ssh/host/session/session.h"
#include "tests/simulation/world.h"

namespace dtool::simulation {
namespace {

constexpr Time kForLastWords = 15s;  // as in supervised_session.cpp

}  // namespace

SimulatedHost::SimulatedHost(World& world, int its_place, const Scenario& scenario, double rate,
                             Time offset)
    : place(its_place), disk(its_place), world_(world), rate_(rate), offset_(offset) {
  settings_.place = place;
  settings_.host = "h" + std::to_string(place);
  settings_.places = scenario.places;
  settings_.max_restarts = scenario.max_restarts;
  settings_.lost_after = scenario.lost_after;
  settings_.address = "127.0.0.1";
  settings_.port = 1;
  if (place != 0) return;
  for (int i = 0; i < scenario.places; ++i) settings_.hosts.push_back("h" + std::to_string(i));
  settings_.ends_with = scenario.ends_with;
}

Time SimulatedHost::local_time() const {
  return offset_ +
         Time(static_cast<std::int64_t>(static_cast<double>(world_.now().count()) * rate_));
}

void SimulatedHost::begin() {
  if (!is_alive || has_mark) return;
  session_ = Session::whole;
  disk.make("exit_code.new");  // as begin_job()
  disk.write("exit_code.new", "\n\n\n\n");
  const Time now = local_time();
  if (place == 0) coordinator_.emplace(settings_, now);
  if (place != 0) link_.emplace(world_, place, settings_, now);
  machine_.emplace(settings_, *this, now);
  rest();
}

void SimulatedHost::schedule(Time delay) {
  const std::uint64_t number = ++turn_;
  world_.at(world_.now() + delay, [this, number] {
    if (number == turn_) turn();
  });
}

void SimulatedHost::rest() {
  const Time patience = host::patience_of(coordinator(), *machine_, link(), local_time());
  schedule(std::max(patience, Time(1)));
}

void SimulatedHost::take(Message message) {
  if (!has_session()) return;
  inbox_.push_back(std::move(message));
  schedule(0ms);
}

void SimulatedHost::turn() {
  if (!has_session()) return;
  const Time stands_until = std::max(frozen_until, busy_until);
  if (world_.now() < stands_until) return schedule(stands_until - world_.now());
  if (session_ == Session::guard) return act_for_session();
  act();
  if (machine_->is_over()) {
    const Time now = local_time();
    if (!last_words_end_) last_words_end_ = now + kForLastWords;
    const bool is_through = machine_->came_too_late() || now >= *last_words_end_ ||
                            host::has_said_last_words(coordinator(), link(), now);
    if (is_through) {
      session_ = Session::none;
      world_.tell("h" + std::to_string(place) + ": the session has ended");
      return;
    }
  }
  rest();
}

void SimulatedHost::act() {
  const Time now = local_time();
  while (!inbox_.empty()) {
    const Message message = std::move(inbox_.front());
    inbox_.pop_front();
    if (coordinator_) {
      world_.deliver_to_port(message, *coordinator_, now);
    } else if (auto decision = link_->take(message, now)) {
      heard_ = std::move(decision);
    }
  }
  const auto send = [this](const Decision& decision) { world_.decide(decision); };
  host::take_turn(coordinator(), *machine_, link(), heard_, send, now);
}

void SimulatedHost::kill_session() {
  if (session_ != Session::whole || machine_->is_over()) return;
  session_ = Session::guard;
  inbox_.clear();
  link_.reset();
  schedule(10ms);
}

/// As guard.cpp's act_for_session.
void SimulatedHost::act_for_session() {
  const Time now = local_time();
  was_killed = true;
  if (has_mark) return schedule(1s);
  if (place == 0) {
    end_processes();
    session_ = Session::none;
    return;
  }
  if (!link_) {
    link_.emplace(world_, place, settings_, now);
    const host::GuardsWords words = host::words_of_guard(place, told_.value_or(Report()));
    told_ = words.last;
    if (words.failure) {
      link_->tell(*words.failure, now);
      guard_until_ = now + host::kForGuardsFailure;
    } else {
      say_guards_last_words(now);
    }
  }
  for (const Message& message : inbox_) link_->take(message, now);
  inbox_.clear();
  link_->turn(now);
  if (!link_->is_told() && !link_->is_refused(now) && now < *guard_until_) return schedule(100ms);
  if (guard_is_gone_) {
    session_ = Session::none;
    return;
  }
  say_guards_last_words(now);
  schedule(100ms);
}

void SimulatedHost::say_guards_last_words(Time now) {
  guard_is_gone_ = true;
  end_processes();
  link_->tell(*told_, now);
  guard_until_ = now + host::kForGuardsLastWords;
}

void SimulatedHost::kill_all() {
  end_processes();
  session_ = Session::none;
}

bool SimulatedHost::start_script(int attempt, const std::vector<int>& places) {
  if (has_mark) return false;
  if (script_runs_) world_.breaks("two scripts of a run run on machine " + std::to_string(place));
  if (attempt < attempt_ || (attempt == attempt_ && attempt != 0))
    world_.breaks("an attempt begins twice on machine " + std::to_string(place));
  attempt_ = attempt;
  script_runs_ = was_started_ = true;
  script_code_.reset();
  stopped_rank_.clear();
  is_victim_ = false;
  world_.begins(*this, attempt, places);
  return true;
}

std::optional<int> SimulatedHost::wait_for_script(Time) {
  if (!was_started_ || !script_code_) return std::nullopt;
  was_started_ = false;
  return script_code_;
}

void SimulatedHost::end_processes() {
  if (script_runs_) {
    if (walled_until >= kForGood && !has_mark && session_ == Session::whole)
      world_.breaks("machine " + std::to_string(place) +
                    ", which machine 0 never answered, ends its script");
    script_runs_ = false;
    script_code_ = 143;
    busy_until = world_.now() + world_.random(0ms, world_.longest_stop());
    world_.ends(*this, 143, false);
  }
}

void SimulatedHost::end_script(int code, bool is_victim) {
  if (!runs()) return;
  script_runs_ = false;
  script_code_ = code;
  is_victim_ = is_victim;
  exit_codes[attempt_] = code;
  world_.ends(*this, code, true);
  if (has_session()) schedule(1ms);
}

std::optional<std::chrono::seconds> SimulatedHost::find_kill() {
  if (!has_mark) return std::nullopt;
  return 100s;
}

void SimulatedHost::say(const std::string& line) {
  world_.tell("h" + std::to_string(place) + " says: " + line);
}

template <class Write>
void SimulatedHost::write_down(const std::string& file, const std::string& content, Write write) {
  written[file].insert(content);
  try {
    write(file, content);
  } catch (const std::runtime_error&) {
    world_.tell("h" + std::to_string(place) + ": no room for " + file);
  }
}

void SimulatedHost::note(const std::string& file, const std::string& line) {
  write_down(file, line + "\n", [this](const std::string& path, const std::string& content) {
    host::write_whole(disk, path, content);
  });
  notes[file] = line;
  if (file == "supervision" && line == "ok") was_answered = true;
  if (file == "cause") world_.note_cause(*this);
}

void SimulatedHost::record_end(int code) {
  if (recorded) return;
  recorded = code;
  write_down("exit_code", std::to_string(code) + "\n",
             [this](const std::string& path, const std::string& content) {
               host::write_reserved(disk, path, content);
             });
}

void SimulatedHost::tell(const Report& report) {
  told_ = report;
  const Time now = local_time();
  world_.tell("h" + std::to_string(place) + " reports attempt " + std::to_string(report.attempt) +
              ", standing " + std::to_string(static_cast<int>(report.standing)) + " " +
              report.text);
  if (coordinator_) {
    coordinator_->take(0, report, now);
    world_.hear(0, report);
  }
  if (link_) link_->tell(report, now);
}

}  // namespace dtool::simulation
