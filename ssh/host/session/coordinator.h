// SPDX-License-Identifier: MIT
// The additional task of machine 0's session: it receives all machines' reports and decides how the
// run continues. No socket, file or clock: reports and times come in, decisions go out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/session/report.h"
#include "ssh/host/session/supervision.h"

namespace dtool::host {

class Coordinator {
 public:
  /// `settings` is machine 0's, with the names of all hosts.
  Coordinator(const Supervision& settings, Time now);

  /// Takes a report of that machine, or the same one again as a sign of life.
  void take(int place, const Report& report, Time now);

  /// The new decision, if there is one. Called at least once a second.
  std::optional<Decision> decide(Time now);

  /// Whether the next decision may be due within a second.
  bool is_judging() const { return phase_ == Phase::gathering || !failures_.empty(); }

  /// Whether all machines have gone, so that no report and no question can come.
  bool has_all_gone(Time now) const { return all_have(Standing::gone, now); }

 private:
  enum class Phase { running, gathering, over };
  struct Failure {
    Standing standing;
    int code;
    std::string text;
    CausePlace place;
  };
  struct Machine {
    std::optional<Report> report;  ///< the newest one
    std::optional<Time> heard;
    bool is_lost = false;  ///< during this attempt
  };

  void add_failure(const Failure& failure, Time now);
  bool is_watched(int place) const;
  bool hears_nobody(Time now) const;
  void find_lost(Time now);
  void forgive_own_silence(Time now);
  Time silence_of(const Machine& machine, Time now) const;
  bool all_have(Standing standing, Time now) const;
  bool has_ended_well(std::optional<int> place) const;
  static bool is_first_hand(const Failure& failure);
  bool is_any_running() const;
  bool is_any_silent() const;
  bool has_heard_enough(Time now) const;
  Failure find_cause() const;
  Decision judge(Time now);
  Decision begin_next_attempt();

  Supervision settings_;
  std::vector<Machine> machines_;  ///< the machines by place
  std::vector<int> members_;       ///< places that take part in this attempt
  std::vector<Failure> failures_;  ///< the failures of this attempt, in the order of arrival
  Phase phase_ = Phase::running;
  int attempt_ = 0;
  Time began_;
  Time looked_at_;
  Time listens_since_;
  Time first_failure_at_{};
  Time gathering_since_{};
  std::optional<Time> searched_at_;
};

}  // namespace dtool::host
