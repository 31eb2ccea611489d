// SPDX-License-Identifier: MIT
#include "tests/simulation/launches.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>

#include "cli/console.h"
#include "cli/kill/end_run.h"
#include "cli/run/earlier_run.h"
#include "cli/watch/status_answer.h"
#include "ssh/wire/run.h"
#include "tests/simulation/event.h"
#include "tests/unit/fake_remote.h"

namespace dtool::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Time kForLockOfStart = 60s;  // as in ssh/host/start_job.cpp
constexpr Time kForLockOfKill = 30s;   // as in ssh/host/kill.cpp
constexpr Time kForAnswers = 90s;
constexpr Time kEnd = 1000s;

/// A run's part on a host.
struct Part {
  bool has_folder = false;  ///< the run's
  bool is_marked = false;   ///< by kill
  bool was_started = false;
  int boot = 0;  ///< of the start
  bool has_session = false;
  bool has_rank = false;
  bool has_recorded = false;
  bool is_locked = false;
};

struct Run {
  std::optional<int> earlier;
  bool has_killfile = false;
  bool has_record = false;  ///< which stays when it is forgotten
  bool is_claimed = false;  ///< a kill said that none is left
  bool may_begin = false;   ///< a kill said that a start is at work
  std::set<int> unasked;    ///< hosts that did not answer when it, or one before it, was resumed
  std::vector<int> boots;   ///< of the hosts, as they were looked at
};

struct Host {
  int boot = 0;
  Time away_until{0};
  Time waits_until{0};
  Time slow_until{0};
  std::map<int, Part> parts;
};

std::string identity(int host, int boot) {
  const std::string digit(1, static_cast<char>('0' + boot % 10));
  return "0123456789abcdef0123456789abcde" + std::to_string(host) + " h" + std::to_string(host) +
         " 5f0c91aa-1111-4222-8333-44445555666" + digit + " 4026531836";
}

class Launches {
 public:
  Launches(const LaunchScenario& scenario, std::string* story)
      : scenario_(scenario), story_(story), engine_(scenario.seed) {
    hosts_.resize(static_cast<std::size_t>(scenario.hosts));
  }
  std::optional<std::string> go();

 private:
  using Answers = std::map<std::size_t, ssh::HostResult>;
  /// A launcher's way through one command. Each step may be its last.
  struct Command {
    int steps_left;
    bool goes_on() { return steps_left-- > 0; }
  };
  using Shared = std::shared_ptr<Command>;
  /// What a launcher does with its hosts' answers.
  using Then = std::function<void(const Answers&)>;
  struct Gathering {
    Answers answers;
    bool is_over = false;
  };

  Time random(Time least, Time most) {
    return least + Time(static_cast<std::int64_t>(
                       engine_() % static_cast<std::uint64_t>((most - least).count() + 1)));
  }
  bool one_in(std::uint64_t count) { return engine_() % count == 0; }
  void after(Time delay, std::function<void()> action) {
    events_.push({now_ + delay, next_++, std::move(action)});
  }
  void tell(const std::string& line) {
    if (story_ != nullptr) *story_ += std::to_string(now_.count()) + " ms " + line + "\n";
  }
  void breaks(const std::string& promise) {
    if (!broken_) broken_ = promise;
    tell("BROKEN: " + promise);
  }
  Host& host(int place) { return hosts_[static_cast<std::size_t>(place)]; }
  Part& part(int place, int run) { return host(place).parts[run]; }
  bool is_away(int place) { return now_ < host(place).away_until; }
  killfiles::Killfile killfile_of(int run) const;

  void happen(const HostFault& fault);
  void launch(const Launch& launch);
  void start(int run, const Shared& command);
  void kill(int run, const Shared& command, cli::Starts starts, bool forgets);
  void forget(int run, const Shared& command);
  void resume(int run, const Shared& command);
  using Reply = std::function<void(ssh::HostResult)>;
  void ask_all(const std::function<void(int, Reply)>& ask, const Then& then);
  void take_start(int place, int run, const Reply& reply);
  void start_under_lock(int place, int run, const Reply& reply);
  void begin(int place, int run);
  void take_kill(int place, int run, const Reply& reply);
  void end_processes(int place, int run, host::KillReply told, const Reply& reply);
  std::string status_of(int place, int run);
  /// Calls `then` once the lock is free, with whether it was within that time.
  void lock(int place, int run, Time patience, const std::function<void(bool)>& then);
  bool are_related(int one, int other) const;

  const LaunchScenario scenario_;
  std::string* const story_;
  std::mt19937_64 engine_;
  Time now_{0};
  std::priority_queue<Event> events_;
  std::uint64_t next_ = 0;
  std::optional<std::string> broken_;
  std::vector<Host> hosts_;
  std::vector<Run> runs_;
};

killfiles::Killfile Launches::killfile_of(int run) const {
  killfiles::Killfile killfile;
  killfile.run_id = "r_" + std::to_string(run);
  for (int place = 0; place < scenario_.hosts; ++place) {
    killfiles::Machine machine;
    machine.id = place;
    machine.host = "h" + std::to_string(place);
    machine.session = killfile.run_id;
    machine.state_folder = killfiles::state_folder(killfile.run_id, place);
    const int boot = runs_[static_cast<std::size_t>(run)].boots[static_cast<std::size_t>(place)];
    machine.identity = killfiles::parse_identity(identity(place, boot)).value();
    killfile.machines.push_back(machine);
  }
  return killfile;
}

/// Each host is asked at once; those that have not answered in time count as silent.
void Launches::ask_all(const std::function<void(int, Reply)>& ask, const Then& then) {
  auto gathering = std::make_shared<Gathering>();
  const auto end = [gathering, then] {
    if (std::exchange(gathering->is_over, true)) return;
    then(gathering->answers);
  };
  for (int place = 0; place < scenario_.hosts; ++place) {
    const auto at = static_cast<std::size_t>(place);
    gathering->answers[at] = tests::failed(ssh::Failure::timed_out, "no answer");
    after(random(0s, one_in(6) ? 20s : 1s), [this, place, at, ask, gathering, end] {
      if (is_away(place)) return;
      ask(place, [this, place, at, gathering, end](ssh::HostResult result) {
        if (is_away(place)) return;
        result.host = ssh::parse_host("h" + std::to_string(place));
        gathering->answers[at] = std::move(result);
        if (std::ranges::all_of(gathering->answers, [](const auto& each) {
              return each.second.failure != ssh::Failure::timed_out;
            }))
          after(1ms, end);
      });
    });
  }
  after(kForAnswers, end);
}

void Launches::lock(int place, int run, Time patience, const std::function<void(bool)>& then) {
  const int boot = host(place).boot;
  if (host(place).boot != boot) return;
  if (!part(place, run).is_locked) return then(true);
  if (patience <= 0ms) return then(false);
  after(500ms, [=, this] {
    if (host(place).boot == boot) lock(place, run, patience - 500ms, then);
  });
}

// As ssh/host/start_job.cpp's start().
void Launches::take_start(int place, int run, const Reply& reply) {
  const auto refuse = [&](const std::string& why) {
    tell("h" + std::to_string(place) + " does not start run " + std::to_string(run) + ": " + why);
    reply(tests::failed(ssh::Failure::not_started, why));
  };
  if (host(place).boot !=
      runs_[static_cast<std::size_t>(run)].boots[static_cast<std::size_t>(place)])
    return refuse("another host");
  if (!part(place, run).has_folder) return refuse("no folder");
  lock(place, run, kForLockOfStart, [=, this](bool is_free) {
    Part& found = part(place, run);
    if (!is_free || found.is_marked || found.was_started || !found.has_folder)
      return reply(tests::failed(ssh::Failure::not_started, "kill, or a start, came first"));
    found.is_locked = true;
    start_under_lock(place, run, reply);
  });
}

void Launches::start_under_lock(int place, int run, const Reply& reply) {
  const int boot = host(place).boot;
  const bool is_slow = now_ < host(place).slow_until;
  after(is_slow ? 40s : random(0s, 3s), [=, this] {
    if (host(place).boot != boot) return;
    if (part(place, run).is_marked) {
      part(place, run).is_locked = false;
      return reply(tests::failed(ssh::Failure::not_started, "kill came first"));
    }
    begin(place, run);
    after(random(0s, 2s), [=, this] {
      if (host(place).boot != boot) return;
      part(place, run).is_locked = false;
      reply(tests::answered(""));
    });
  });
}

bool Launches::are_related(int one, int other) const {
  for (auto each = runs_[static_cast<std::size_t>(std::max(one, other))].earlier; each;
       each = runs_[static_cast<std::size_t>(*each)].earlier) {
    if (*each == std::min(one, other)) return true;
  }
  return false;
}

/// A rank begins: never where a kill has said that none is left, nor beside another incarnation.
void Launches::begin(int place, int run) {
  Part& its = part(place, run);
  tell("h" + std::to_string(place) + " begins run " + std::to_string(run));
  if (runs_[static_cast<std::size_t>(run)].is_claimed)
    breaks("run " + std::to_string(run) + " begins after a kill said that none is left");
  if (its.was_started) breaks("a rank begins twice");
  its.was_started = its.has_session = its.has_rank = true;
  its.boot = host(place).boot;
  for (int other = 0; other < static_cast<int>(runs_.size()); ++other) {
    if (!are_related(run, other)) continue;
    const Run& later = runs_[static_cast<std::size_t>(std::max(run, other))];
    const Run& earlier = runs_[static_cast<std::size_t>(std::min(run, other))];
    for (int each = 0; each < scenario_.hosts; ++each) {
      const int of_earlier = run < other ? place : each;
      if (part(each, other).has_rank && !later.unasked.contains(of_earlier) && !earlier.may_begin)
        breaks("runs " + std::to_string(run) + " and " + std::to_string(other) +
               " of one training go on at once");
    }
  }
  const int boot = its.boot;
  after(random(2s, 90s), [=, this] {
    if (host(place).boot != boot) return;
    Part& ended = part(place, run);
    ended.has_recorded = ended.has_recorded || (ended.has_session && !ended.is_marked);
    ended.has_rank = false;
    after(random(0s, 15s), [=, this] { part(place, run).has_session = false; });
  });
}

// As ssh/host/kill.cpp's kill_run().
void Launches::take_kill(int place, int run, const Reply& reply) {
  host::KillReply told;
  told.host = identity(place, host(place).boot);
  if (!part(place, run).has_folder) {
    told.no_folder = killfiles::state_folder("r_" + std::to_string(run), place);
    return end_processes(place, run, told, reply);
  }
  lock(place, run, kForLockOfKill, [=, this](bool is_free) {
    host::KillReply answer = told;
    if (!is_free) answer.locked = "its folder";
    part(place, run).is_marked = true;
    end_processes(place, run, answer, reply);
  });
}

void Launches::end_processes(int place, int run, host::KillReply told, const Reply& reply) {
  const int boot = host(place).boot;
  after(part(place, run).has_rank ? random(100ms, 6s) : 50ms, [=, this]() mutable {
    if (host(place).boot != boot) return;
    Part& its = part(place, run);
    if (now_ < host(place).waits_until && its.has_rank) {
      told.left = {"7 python3"};
    } else {
      told.ended = its.has_rank ? 1 : 0;
      its.has_rank = false;
    }
    its.has_session = false;
    reply(tests::answered(host::to_frame(told)));
  });
}

void Launches::start(int run, const Shared& command) {
  for (int place = 0; place < scenario_.hosts; ++place) {
    if (is_away(place)) return;  // the hosts are looked at first
    part(place, run).has_folder = true;
    runs_[static_cast<std::size_t>(run)].boots.push_back(host(place).boot);
  }
  if (!command->goes_on()) return;
  Run& recorded = runs_[static_cast<std::size_t>(run)];
  recorded.has_killfile = recorded.has_record = true;
  tell("run " + std::to_string(run) + " is recorded");
  if (!command->goes_on()) return;
  const auto ask = [this, run](int place, const Reply& reply) { take_start(place, run, reply); };
  ask_all(ask, [this, run, command](const Answers& answers) {
    if (!command->goes_on()) return;
    const auto is_well = [](const auto& each) { return each.second.ok(); };
    if (std::ranges::all_of(answers, is_well)) return;
    const auto has_answered = [](const auto& each) {
      return each.second.failure == ssh::Failure::none ||
             each.second.failure == ssh::Failure::not_started;
    };
    const bool have_all = std::ranges::all_of(answers, has_answered);
    kill(run, command, have_all ? cli::Starts::have_answered : cli::Starts::may_come, true);
  });
}

void Launches::kill(int run, const Shared& command, cli::Starts starts, bool forgets) {
  if (!runs_[static_cast<std::size_t>(run)].has_killfile || !command->goes_on()) return;
  tell("run " + std::to_string(run) + " is to be killed");
  const auto ask = [this, run](int place, const Reply& reply) { take_kill(place, run, reply); };
  ask_all(ask, [=, this](const Answers& answers) {
    if (!command->goes_on()) return;
    tests::FakeRemote remote("h[0-" + std::to_string(scenario_.hosts - 1) + "]");
    remote.answers = answers;
    cli::Console console;
    const cli::KillReport report = cli::end_run(console, remote, killfile_of(run), 5s, {}, starts);
    Run& ended = runs_[static_cast<std::size_t>(run)];
    for (const ssh::HostResult& each : report.results)
      ended.may_begin = ended.may_begin || each.error.find("may still begin") != each.error.npos;
    if (!report.none_left) return;
    tell("none is left of run " + std::to_string(run));
    ended.is_claimed = true;
    for (int place = 0; place < scenario_.hosts; ++place) {
      if (part(place, run).has_rank)
        breaks("a kill says that none is left of run " + std::to_string(run) + ", and on h" +
               std::to_string(place) + " a rank goes on");
    }
    if (forgets) forget(run, command);
  });
}

/// The folders first, then the killfile: whoever is killed in between leaves a run to kill.
void Launches::forget(int run, const Shared& command) {
  for (int place = 0; place < scenario_.hosts; ++place) {
    if (!command->goes_on()) return;
    if (!is_away(place)) part(place, run) = {};
  }
  runs_[static_cast<std::size_t>(run)].has_killfile = false;
}

// As ssh/host/answers/status.cpp tells it.
std::string Launches::status_of(int place, int run) {
  const Part& its = part(place, run);
  host::StatusAnswer answer;
  answer.lacks_run_folder = !its.has_folder;
  if (its.was_started) answer.pid = 7;
  if (its.has_session && !its.has_recorded) answer.up_s = 1;
  answer.was_rebooted = its.was_started && its.boot != host(place).boot;
  answer.is_killed = its.is_marked;
  if (its.has_recorded) answer.exit_code = 0;
  answer.processes = static_cast<int>(its.has_session) + static_cast<int>(its.has_rank);
  host::StatusReply reply;
  reply.host = identity(place, host(place).boot);
  reply.machines.push_back(answer);
  return host::to_frame(reply);
}

void Launches::resume(int run, const Shared& command) {
  const bool is_resumed = std::ranges::any_of(
      runs_, [run](const Run& each) { return each.earlier == run && each.has_record; });
  if (is_resumed || !runs_[static_cast<std::size_t>(run)].has_record) return;
  Run next;
  next.earlier = run;
  next.unasked = runs_[static_cast<std::size_t>(run)].unasked;
  if (runs_[static_cast<std::size_t>(run)].has_killfile) {
    const killfiles::Killfile killfile = killfile_of(run);
    std::vector<cli::MachineStatus> machines;
    for (int place = 0; place < scenario_.hosts; ++place) {
      ssh::HostResult result = is_away(place) ? tests::failed(ssh::Failure::timed_out, "no answer")
                                              : tests::answered(status_of(place, run));
      result.host = ssh::parse_host("h" + std::to_string(place));
      const auto& machine = killfile.machines[static_cast<std::size_t>(place)];
      machines.push_back(cli::read_statuses({{killfile.run_id, machine}}, result).front());
      const auto state = machines.back().state;
      if (state == cli::MachineState::unreachable || state == cli::MachineState::unproven)
        next.unasked.insert(place);
    }
    const std::string why = cli::why_not_ended(machines);
    tell("resume: " + (why.empty() ? "run " + std::to_string(run) + " has ended" : why));
    if (!why.empty() || next.unasked.contains(0)) return;
  }
  runs_.push_back(next);
  start(static_cast<int>(runs_.size()) - 1, command);
}

void Launches::launch(const Launch& launch) {
  const auto command = std::make_shared<Command>(launch.steps);
  if (launch.kind == Launch::Kind::start && runs_.empty()) {
    runs_.emplace_back();
    return start(0, command);
  }
  if (runs_.empty()) return;
  const int newest = static_cast<int>(runs_.size()) - 1;
  const int run = one_in(3) ? 0 : newest;
  if (launch.kind == Launch::Kind::kill) kill(run, command, cli::Starts::may_come, launch.forgets);
  if (launch.kind == Launch::Kind::resume) resume(run, command);
}

void Launches::happen(const HostFault& fault) {
  Host& its = host(fault.host);
  tell("FAULT " + std::to_string(static_cast<int>(fault.kind)) + " on h" +
       std::to_string(fault.host));
  switch (fault.kind) {
    case HostFault::Kind::reboots:
      ++its.boot;
      for (auto& [run, each] : its.parts) {
        each.has_session = each.has_rank = each.is_locked = false;
        // What was not flushed is lost.
        if (one_in(2)) each.is_marked = false;
      }
      its.away_until = std::max(its.away_until, now_ + 10s);
      break;
    case HostFault::Kind::is_away:
      its.away_until = std::max(its.away_until, now_ + 30s);
      break;
    case HostFault::Kind::waits:
      its.waits_until = now_ + 60s;
      break;
    case HostFault::Kind::loses_session:
      for (auto& [run, each] : its.parts) each.has_session = false;
      break;
    case HostFault::Kind::loses_folders:
      for (auto& [run, each] : its.parts) each.has_folder = false;
      break;
    case HostFault::Kind::is_slow:
      its.slow_until = now_ + 60s;
      break;
  }
}

std::optional<std::string> Launches::go() {
  for (const Launch& each : scenario_.launches) after(each.at, [this, each] { launch(each); });
  for (const HostFault& each : scenario_.faults) after(each.at, [this, each] { happen(each); });
  while (!events_.empty() && events_.top().time < kEnd && !broken_) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    event.action();
  }
  return broken_;
}

}  // namespace

std::optional<std::string> simulate(const LaunchScenario& scenario, std::string* story) {
  return Launches(scenario, story).go();
}

}  // namespace dtool::simulation
