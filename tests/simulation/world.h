// SPDX-License-Identifier: MIT
// The parts of a simulated run: the machines' links to machine 0, the hosts with their scripts and
// sessions, and the world in which faults and time happen.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/session/coordinator.h"
#include "ssh/host/session/machine.h"
#include "ssh/host/session/report_link.h"
#include "ssh/host/session/report_port.h"
#include "tests/simulation/event.h"
#include "tests/simulation/simulated_disk.h"
#include "tests/simulation/simulated_run.h"

namespace dtool::simulation {

using namespace std::chrono_literals;
using host::Decision;
using host::LinkFault;
using host::LinkState;
using host::Report;
using host::Standing;
using host::Supervision;
using host::Verb;

/// A message on a connection between a machine and machine 0.
struct Message {
  enum class Kind { hello, welcome, report, answer, refusal } kind;
  int place = 0;  ///< of the machine, for which ends at machine 0
  int connection = 0;
  Report report = {};
  host::Answer answer = {};
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
  void stop_rank() { stopped_rank_ = std::to_string(place); }

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
  /// Nothing has come between it and machine 0 so far.
  bool is_undisturbed() const {
    return cut_until == 0s && frozen_until == 0s && walled_until == 0s && !has_mark && is_alive;
  }
  bool has_ended_well() const { return told_ && told_->standing == Standing::ended; }
  bool is_going() const { return told_ && told_->standing == Standing::gone; }
  bool has_whole_session() const { return is_alive && session_ == Session::whole; }
  void drop(int connection) {
    std::erase_if(inbox_, [&](const Message& each) { return each.connection == connection; });
  }
  bool listens() const { return is_alive && place == 0 && session_ == Session::whole; }
  int attempt() const { return attempt_; }
  void schedule(Time delay);

  const int place;
  SimulatedDisk disk;
  std::map<std::string, std::set<std::string>> written;  ///< whole files, by name
  bool is_alive = true;
  Time frozen_until{0};
  Time cut_until{0};
  Time walled_until{0};
  Time busy_until{0};                     ///< its session, which ends processes
  bool was_killed = false;                ///< its session
  bool was_answered = false;              ///< by machine 0
  std::optional<Time> unreachable_since;  ///< for good, or for longer than anybody waits
  bool has_mark = false;
  std::optional<int> recorded;
  std::map<std::string, std::string> notes;
  std::map<int, int> exit_codes;  ///< of scripts, by attempt, that ended by themselves

 private:
  enum class Session { none, whole, guard };

  template <class Write>
  void write_down(const std::string& file, const std::string& content, Write write);
  void act();
  void act_for_session();
  void say_guards_last_words(Time now);
  host::Coordinator* coordinator() { return coordinator_ ? &*coordinator_ : nullptr; }
  SimulatedLink* link() { return link_ ? &*link_ : nullptr; }
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

  void send_to_port(Message message) { send(std::move(message), Towards::port); }
  void send_to_link(Message message) { send(std::move(message), Towards::link); }
  void deliver_to_port(const Message& message, host::Coordinator& coordinator, Time local);
  void decide(const Decision& decision);
  void answer(int connection);
  /// Machine 0 takes that report.
  void hear(int place, const Report& report);
  /// A machine gave up that connection: often what machine 0 has not read of it is lost.
  void reset(int connection);
  Time longest_stop() const { return scenario_.longest_stop; }
  void begins(const SimulatedHost& host, int attempt, const std::vector<int>& places);
  void ends(const SimulatedHost& host, int code, bool by_itself);
  void note_cause(const SimulatedHost& host);

 private:
  /// Something that failed by itself.
  struct Root {
    int place;
    bool can_be_found;
    bool lasts;  ///< beyond the attempt
    Time at{};
    int code = 0;  ///< of a rank that failed
  };

  void happen(const Fault& fault);
  void die(SimulatedHost& host);
  void lose_power(SimulatedHost& host);
  void note_root(int place, bool can_be_found, bool lasts, int code = 0);
  void expect_decision(int place);
  void check_loss(const SimulatedHost& host);
  void check_cause(const Decision& decision);
  void check_members(const Decision& decision);
  bool have_all_answered() const;
  bool is_program_whole() const;
  void advance_program();
  void check_old_attempts(int attempt);
  void check_end();
  void check_records(const SimulatedHost& host);
  bool is_cut(int place, Time time) const;
  enum class Towards { port, link };
  void send(Message message, Towards towards);

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
  host::PortState port_;
  std::set<int> guests_;       ///< connections that have said no more than hello
  std::map<int, int> places_;  ///< of machines, by connection
  std::map<std::pair<int, Towards>, Time> last_arrival_;  ///< by connection
  Decision decision_;
  int decisions_ = 0;
  std::vector<int> members_;
  int attempt_ = 0;  ///< the newest that a script has begun
  Time progress_{0};
  Time gathering_since_{0};
  std::optional<Time> all_answered_at_;  ///< in this gathering
  std::map<int, Report> heard_;          ///< the newest report, by place, that machine 0 took
  std::map<int, Time> heard_at_;
  std::map<int, std::vector<int>>
      plain_;        ///< by attempt: those that failed after others, and do not show it
  Time stalled_{0};  ///< how long the program has not gone on
  bool is_program_over_ = false;            ///< in this attempt: it has ended, or will never
  std::map<int, std::vector<Root>> roots_;  ///< by attempt
};

}  // namespace dtool::simulation
