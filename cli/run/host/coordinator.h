// What machine 0's session does beyond its own machine's part: it hears all machines' reports and
// decides what becomes of the run. No socket, no file, no clock: reports and times come in,
// decisions go out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/host/report.h"
#include "cli/run/host/supervision.h"

namespace dtool::host {

class Coordinator {
 public:
  /// `settings` is machine 0's, with all hosts' names.
  Coordinator(const Supervision& settings, Time now);

  /// A report of that machine, or the same one again as a sign of life.
  void take(int place, const Report& report, Time now);

  /// What is new in the run's course, if anything is. Called at least once a second.
  std::optional<Decision> decide(Time now);

  /// Whether the next decision may be due within a second.
  bool is_judging() const { return phase_ == Phase::gathering || !failures_.empty(); }

  /// Whether nobody is left who could report or ask for a decision.
  bool has_all_gone(Time now) const { return all_have(Standing::gone, now); }

 private:
  enum class Phase { running, gathering, over };
  struct Failure {
    int code;
    std::string text;
  };
  struct Machine {
    std::optional<Report> report;  ///< the newest
    std::optional<Time> heard;
    bool is_lost = false;  ///< in this attempt
  };

  void add_failure(int code, const std::string& text, Time now);
  void find_lost(Time now);
  void forgive_own_silence(Time now);
  bool all_have(Standing standing, Time now) const;
  bool is_any_running() const;
  Decision judge(Time now);
  Decision begin_next_attempt();

  Supervision settings_;
  std::vector<Machine> machines_;  ///< by place
  std::vector<int> members_;       ///< who takes part in this attempt
  std::vector<Failure> failures_;  ///< of this attempt, as they were heard
  Phase phase_ = Phase::running;
  int attempt_ = 0;
  Time began_;
  Time looked_at_;
  Time first_failure_at_{};
  Time gathering_since_{};
  std::optional<Time> searched_at_;
};

}  // namespace dtool::host
