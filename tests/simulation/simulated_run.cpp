// SPDX-License-Identifier: MIT
#include "tests/simulation/simulated_run.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <utility>

#include "cli/run/host/coordinator.h"
#include "cli/run/host/link_state.h"
#include "cli/run/host/machine.h"

namespace dtool::simulation {
namespace {

using namespace std::chrono_literals;
using host::Decision;
using host::LinkFault;
using host::LinkState;
using host::Report;
using host::Standing;
using host::Supervision;
using host::Verb;

constexpr int kKilled = 137;
constexpr Time kSoon = 100ms;        // as in supervised_session.cpp
constexpr Time kLongestRest = 1s;    // likewise
constexpr Time kForLastWords = 15s;  // likewise
constexpr Time kEnd = 6000s;         // a run that goes on then goes on for ever

/// A message on a connection between a machine and machine 0.
struct Message {
  enum class Kind { hello, welcome, report, answer, refusal } kind;
  int connection = 0;
  Report report = {};
  std::uint64_t taken = 0;
  std::optional<Decision> decision = {};
};

class World;

/// The sockets of a ReportLink: what it does with a LinkState is report_link.cpp's.
class SimulatedLink {
 public:
  SimulatedLink(World& world, int place, const Supervision& settings, Time now)
      : world_(world), place_(place), state_(settings, now) {}

  void tell(const Report& report, Time now);
  bool is_told() const {
    return !is_new_ && connection_ && connection_->taken == connection_->sent_reports;
  }
  bool is_refused(Time now) const { return state_.is_refused(now); }
  std::optional<Decision> take(const Message& message, Time now);
  std::optional<std::string> turn(Time now);
  std::optional<Time> time_to_next_try(Time now) const {
    if (connection_) return std::nullopt;
    return std::max(state_.next_try() - now, Time(0));
  }

 private:
  struct Connection {
    int number = 0;
    bool is_welcome = false;
    Time since{};
    Time heard{};
    Time sent{};
    std::uint64_t sent_reports = 0;
    std::uint64_t taken = 0;
  };

  void send_report(Time now);
  void lose(LinkFault fault, Time now);

  World& world_;
  int place_;
  LinkState state_;
  std::optional<Connection> connection_;
  std::optional<Report> report_;
  bool is_new_ = false;
};

/// A machine of the run, with its clock, its script and its session.
class SimulatedHost : public host::Effects {
 public:
  SimulatedHost(World& world, int place, const Scenario& scenario, double rate, Time offset);

  Time local_time() const;
  void begin();
  void turn();
  void take(Message message);
  void kill_session();
  void kill_all();
  void end_script(int code, bool is_victim);
  void give_up(std::string text) { stopped_rank_ = std::move(text); }

  bool start_script(int attempt, const std::vector<int>& places) override;
  std::optional<int> wait_for_script(Time patience) override;
  void end_processes() override;
  std::optional<std::chrono::seconds> find_kill() override;
  std::string read_first_failure() override { return std::to_string(place); }
  std::string read_last_words(int, int) override { return {}; }
  std::string read_stopped_rank() override { return stopped_rank_; }
  std::string last_line() override {
    return is_victim_ ? "Connection closed by peer" : "ValueError";
  }
  std::uint64_t log_bytes() override { return 0; }
  std::optional<std::uint64_t> count_out_of_memory_kills() override { return 0; }
  void say(const std::string& line) override;
  void note(const std::string& file, const std::string& line) override;
  void record_end(int code) override;
  void tell(const Report& report) override;

  /// Whether its script runs. A script that has ended and was not reaped does not.
  bool runs() const { return is_alive && script_runs_; }
  bool has_session() const { return is_alive && session_ != Session::none; }
  bool listens() const { return is_alive && place == 0 && session_ == Session::whole; }
  int attempt() const { return attempt_; }
  void schedule(Time delay);

  const int place;
  bool is_alive = true;
  Time frozen_until{0};
  Time cut_until{0};
  std::optional<Time> unreachable_since;  ///< for good, or for longer than anybody waits
  bool has_mark = false;
  std::optional<int> recorded;
  std::optional<Time> ended_script_at;
  std::map<std::string, std::string> notes;
  std::map<int, int> exit_codes;  ///< of scripts, by attempt, that ended by themselves

 private:
  enum class Session { none, whole, guard };

  void act();
  void act_for_session();
  void rest();

  World& world_;
  const double rate_;
  const Time offset_;
  Supervision settings_;
  Session session_ = Session::none;
  std::optional<host::Coordinator> coordinator_;
  std::optional<SimulatedLink> link_;
  std::optional<host::Machine> machine_;
  std::deque<Message> inbox_;
  std::optional<Decision> heard_;
  std::optional<Report> told_;
  std::optional<Time> last_words_end_;
  std::optional<Time> guard_until_;
  bool guard_is_gone_ = false;
  int attempt_ = 0;
  bool script_runs_ = false;
  bool was_started_ = false;  ///< a script that was not reaped yet
  std::optional<int> script_code_;
  bool is_victim_ = false;
  std::string stopped_rank_;
  std::uint64_t turn_ = 0;  ///< number of the planned turn; others are void
};

/// Machine 0's connections, as ReportPort has them.
struct PortConnection {
  int number = 0;
  std::uint64_t taken = 0;
  std::optional<std::uint64_t> told = {};
};

class World {
 public:
  World(const Scenario& scenario, Tell tell);
  Outcome run();

  Time now() const { return now_; }
  void at(Time time, std::function<void()> event) {
    events_.push({std::max(time, now_), next_event_++, std::move(event)});
  }
  void tell(const std::string& line) {
    if (tells_ == Tell::story) story_ += std::to_string(now_.count()) + " ms " + line + "\n";
  }
  void breaks(const std::string& promise) {
    if (!broken_) broken_ = promise;
    tell("BROKEN: " + promise);
  }
  Time random(Time least, Time most) {
    return least + Time(static_cast<std::int64_t>(
                       engine_() % static_cast<std::uint64_t>((most - least).count() + 1)));
  }
  bool one_in(int count) { return engine_() % static_cast<std::uint64_t>(count) == 0; }
  int new_connection() { return ++last_connection_; }

  void send_to_port(int place, Message message);
  void send_to_link(int place, Message message);
  void deliver_to_port(int place, const Message& message, host::Coordinator& coordinator,
                       Time local);
  void decide(const Decision& decision);
  void begins(const SimulatedHost& host, int attempt, const std::vector<int>& places);
  void ends(const SimulatedHost& host, int code, bool by_itself);
  void note_cause(const SimulatedHost& host);
  const std::vector<int>& members() const { return members_; }

 private:
  struct Event {
    Time time;
    std::uint64_t number;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return std::pair(other.time, other.number) < std::pair(time, number);
    }
  };
  struct Root {
    int place;
    Time at;
    bool can_be_found;
    bool lasts;  ///< beyond the attempt
  };

  void happen(const Fault& fault);
  void note_root(int place, bool can_be_found, bool lasts);
  bool is_program_whole() const;
  void advance_program();
  void check_old_attempts(int attempt);
  void check_end();
  bool is_cut(int place, Time time) const;
  void send(int from, int to, int place, Message message, bool to_port);

  const Scenario scenario_;
  const Tell tells_;
  std::mt19937_64 engine_;
  Time now_{0};
  std::priority_queue<Event> events_;
  std::uint64_t next_event_ = 0;
  int count_ = 0;
  int last_connection_ = 0;
  std::optional<std::string> broken_;
  std::string story_;
  std::vector<std::unique_ptr<SimulatedHost>> hosts_;
  std::vector<std::optional<PortConnection>> port_;
  std::map<std::pair<int, bool>, Time> last_arrival_;
  Decision decision_;
  std::uint64_t decisions_ = 0;
  std::vector<int> members_;
  int attempt_ = 0;  ///< the newest that a script has begun
  Time progress_{0};
  Time gathering_since_{0};
  Time stalled_{0};                         ///< how long the program has not gone on
  bool is_program_over_ = false;            ///< in this attempt: it has ended, or will never
  std::map<int, std::vector<Root>> roots_;  ///< by attempt
};

// ---- the link

void SimulatedLink::tell(const Report& report, Time now) {
  report_ = report;
  is_new_ = true;
  if (connection_ && connection_->is_welcome) {
    send_report(now);
  } else if (!connection_) {
    state_.wants_connection(now);
  }
}

void SimulatedLink::send_report(Time now) {
  connection_->sent = now;
  ++connection_->sent_reports;
  is_new_ = false;
  world_.send_to_port(place_, {Message::Kind::report, connection_->number, *report_});
}

void SimulatedLink::lose(LinkFault fault, Time now) {
  const bool was_good = connection_ && connection_->is_welcome && connection_->taken > 0;
  connection_.reset();
  is_new_ = report_.has_value();
  state_.lost_connection(fault, was_good, now);
}

std::optional<Decision> SimulatedLink::take(const Message& message, Time now) {
  if (!connection_ || message.connection != connection_->number) return std::nullopt;
  if (message.kind == Message::Kind::refusal) {
    lose(connection_->is_welcome ? LinkFault::silent : LinkFault::refused, now);
    return std::nullopt;
  }
  if (message.kind == Message::Kind::welcome) {
    connection_->is_welcome = true;
    connection_->heard = now;
    if (report_) send_report(now);
    return std::nullopt;
  }
  connection_->taken = message.taken;
  connection_->heard = now;
  state_.heard_answer(now);
  return message.decision;
}

std::optional<std::string> SimulatedLink::turn(Time now) {
  if (state_.look(now) && connection_) connection_->since = connection_->heard = now;
  if (!connection_ && now >= state_.next_try()) {
    connection_.emplace(Connection{world_.new_connection(), false, now, {}, {}, 0, 0});
    world_.send_to_port(place_, {Message::Kind::hello, connection_->number});
  }
  if (connection_ && !connection_->is_welcome && state_.is_late(connection_->since, now))
    lose(LinkFault::silent, now);
  if (connection_ && connection_->is_welcome && state_.is_stale(connection_->heard, now))
    lose(LinkFault::silent, now);
  if (connection_ && connection_->is_welcome && report_ &&
      state_.is_sign_due(connection_->sent, now))
    send_report(now);
  return state_.take_loss(now);
}

// ---- a host

SimulatedHost::SimulatedHost(World& world, int its_place, const Scenario& scenario, double rate,
                             Time offset)
    : place(its_place), world_(world), rate_(rate), offset_(offset) {
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
  const bool is_soon =
      (coordinator_ && coordinator_->is_judging()) || machine_->is_standing_still();
  Time patience = is_soon ? kSoon : kLongestRest;
  if (link_) {
    if (const auto next_try = link_->time_to_next_try(local_time()))
      patience = std::min(patience, *next_try);
  }
  schedule(std::max(patience, Time(1)));
}

void SimulatedHost::take(Message message) {
  if (!has_session()) return;
  inbox_.push_back(std::move(message));
  schedule(0ms);
}

void SimulatedHost::turn() {
  if (!has_session()) return;
  if (world_.now() < frozen_until) return schedule(frozen_until - world_.now());
  if (session_ == Session::guard) return act_for_session();
  act();
  if (machine_->is_over()) {
    const Time now = local_time();
    if (!last_words_end_) last_words_end_ = now + kForLastWords;
    const bool is_through = machine_->came_too_late() || now >= *last_words_end_ ||
                            (coordinator_ && coordinator_->has_all_gone(now)) ||
                            (link_ && (link_->is_told() || link_->is_refused(now)));
    if (is_through) {
      session_ = Session::none;
      world_.tell("h" + std::to_string(place) + ": the session has ended");
      return;
    }
  }
  rest();
}

/// As SupervisedSession::turn.
void SimulatedHost::act() {
  const Time now = local_time();
  while (!inbox_.empty()) {
    const Message message = std::move(inbox_.front());
    inbox_.pop_front();
    if (coordinator_) {
      world_.deliver_to_port(message.report.rank.value_or(0), message, *coordinator_, now);
    } else if (auto decision = link_->take(message, now)) {
      heard_ = std::move(decision);
    }
  }
  if (heard_) machine_->take(*heard_);
  heard_.reset();
  if (link_) {
    if (const auto loss = link_->turn(now)) machine_->take_loss(*loss);
  }
  if (coordinator_ && !machine_->is_standing_still()) {
    if (const auto decision = coordinator_->decide(now)) {
      world_.decide(*decision);
      machine_->take(*decision);
    }
  }
  machine_->turn(now);
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
  if (has_mark) return schedule(1s);
  if (place == 0) {
    end_processes();
    session_ = Session::none;
    return;
  }
  if (!link_) {
    link_.emplace(world_, place, settings_, now);
    Report report = told_.value_or(Report());
    const bool was_running = report.standing == Standing::running;
    if (was_running || report.standing == Standing::stopped) {
      report.code = kKilled;
      report.text = "the session on machine " + std::to_string(place) + " is gone: it was killed";
    }
    if (was_running) report.standing = Standing::failed;
    guard_is_gone_ = !host::has_failed(report.standing);
    if (guard_is_gone_) {
      end_processes();
      report.standing = Standing::gone;
    }
    told_ = report;
    link_->tell(report, now);
    guard_until_ = now + (guard_is_gone_ ? 20s : 5s);
  }
  for (const Message& message : inbox_) link_->take(message, now);
  inbox_.clear();
  link_->turn(now);
  if (!link_->is_told() && !link_->is_refused(now) && now < *guard_until_) return schedule(100ms);
  if (guard_is_gone_) {
    session_ = Session::none;
    return;
  }
  guard_is_gone_ = true;
  end_processes();
  told_->standing = Standing::gone;
  link_->tell(*told_, now);
  guard_until_ = now + 20s;
  schedule(100ms);
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
    script_runs_ = false;
    script_code_ = 143;
    ended_script_at = world_.now();
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

void SimulatedHost::note(const std::string& file, const std::string& line) {
  notes[file] = line;
  if (file == "cause") world_.note_cause(*this);
}

void SimulatedHost::record_end(int code) {
  if (!recorded) recorded = code;
}

void SimulatedHost::tell(const Report& report) {
  told_ = report;
  const Time now = local_time();
  world_.tell("h" + std::to_string(place) + " reports attempt " + std::to_string(report.attempt) +
              ", standing " + std::to_string(static_cast<int>(report.standing)) + " " +
              report.text);
  if (coordinator_) coordinator_->take(0, report, now);
  if (link_) link_->tell(report, now);
}

// ---- the world

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
void World::send(int from, int to, int place, Message message, bool to_port) {
  const SimulatedHost& sender = *hosts_[static_cast<std::size_t>(from)];
  const SimulatedHost& receiver = *hosts_[static_cast<std::size_t>(to)];
  Time time = now_ + random(0ms, scenario_.latency);
  const Time cut = std::max(sender.cut_until, receiver.cut_until);
  if (now_ < cut) {
    if (cut >= kForGood) return;
    time =
        cut + random(0ms, std::min<Time>(60s, (cut - now_) / 2)) + random(0ms, scenario_.latency);
  }
  Time& last = last_arrival_[{message.connection, to_port}];
  last = time = std::max(time, last);
  at(time, [this, to, place, message = std::move(message), to_port] {
    SimulatedHost& host = *hosts_[static_cast<std::size_t>(to)];
    if (!host.is_alive) return;
    if (is_cut(to, now_)) return send(to_port ? place : 0, to, place, message, to_port);
    if (to_port && !host.listens()) {
      // The kernel says so, unless the whole machine stands still.
      if (now_ >= host.frozen_until)
        send_to_link(place, {Message::Kind::refusal, message.connection});
      return;
    }
    Message arrived = message;
    host.take(std::move(arrived));
  });
}

void World::send_to_port(int place, Message message) {
  message.taken = static_cast<std::uint64_t>(place);
  send(place, 0, place, std::move(message), true);
}

void World::send_to_link(int place, Message message) {
  send(0, place, place, std::move(message), false);
}

/// As ReportPort: the newest connection of a machine counts.
void World::deliver_to_port(int, const Message& message, host::Coordinator& coordinator,
                            Time local) {
  const int place = static_cast<int>(message.taken);
  std::optional<PortConnection>& connection = port_[static_cast<std::size_t>(place)];
  if (message.kind == Message::Kind::hello) {
    if (connection && connection->number > message.connection) return;
    connection.emplace(PortConnection{message.connection});
    send_to_link(place, {Message::Kind::welcome, message.connection});
    return;
  }
  if (!connection || connection->number != message.connection) return;
  ++connection->taken;
  coordinator.take(place, message.report, local);
  Message answer{Message::Kind::answer, message.connection};
  answer.taken = connection->taken;
  if (connection->told != decisions_) answer.decision = decision_;
  connection->told = decisions_;
  send_to_link(place, std::move(answer));
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
    Message answer{Message::Kind::answer, connection->number};
    answer.taken = connection->taken;
    answer.decision = decision_;
    send_to_link(static_cast<int>(place), std::move(answer));
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
      {place, now_,
       can_be_found && is_heard && is_looked_at && host.has_session() && !host.has_mark, lasts});
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
      host.give_up(std::to_string(fault.place));
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
      if (root.lasts && attempt < host.attempt())
        roots.push_back({root.place, root.at, false, true});
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

}  // namespace

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
