// SPDX-License-Identifier: MIT
// The findings of `dtool check` as facts with a verdict each, and the folding of many hosts' facts;
// and its trial of the listener (listener_trial.cpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/ready/check_hosts.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::cli {

// The trial: whether every host reaches rank 0's address. In the same round trip it measures how
// far each host's clock is from the launcher's.

/// The result for one host.
struct TrialOfHost {
  std::string interface;               ///< the interface of the route; empty: unknown
  bool reached = false;                ///< it read machine 0's message
  std::string fault;                   ///< why not; empty if nothing was tried
  std::optional<double> clock_offset;  ///< seconds ahead of the launcher's clock
  double clock_uncertainty = 0;        ///< seconds: half of the round trip
};

/// The result of the trial.
struct ListenerTrial {
  std::string address;
  std::uint16_t port = 0;
  bool listened = false;
  std::string fault;  ///< why machine 0 did not listen although it should
  std::string hint;
  std::vector<TrialOfHost> hosts;  ///< one per host of the remote
};

/// What to try.
struct TrialPlan {
  std::string address;  ///< machine 0's address; empty: only clocks
  std::uint16_t port = 0;
  std::vector<std::size_t> hosts;  ///< those that have answered
  /// The longest time that it listens, in case dtool is killed meanwhile.
  std::chrono::seconds listens{60};
};

/// Makes machine 0 listen and the others connect to it, then ends the listener.
ListenerTrial try_listener(Console& console, ssh::Remote& remote, const TrialPlan& plan);

/// What a fact means for a run.
enum class Verdict { well, warning, failure };

/// `well`, `warning` or `failure`, as in `--json`.
const char* name_of(Verdict verdict);

enum class Unit { count, gibibytes, seconds };

/// A fact that is a number. The values of several hosts are shown as a range.
struct Quantity {
  double number = 0;
  Unit unit = Unit::count;
  double uncertainty = 0;
};

/// One fact about one host.
struct Fact {
  std::string name;   ///< `log-in`, `rsync`; not unique: a host may have two faults of a kind
  std::string value;  ///< empty if `quantity` has it
  Verdict verdict = Verdict::well;
  std::string hint = {};  ///< how to mend it; may contain ssh::kHostsInHint
  std::optional<Quantity> quantity = {};
};

using Facts = std::vector<Fact>;

/// The facts that one host reported; `machine` is its id.
Facts facts_of(const Checked& checked, const Needs& needs, std::size_t machine,
               const std::string& bundle = {});

/// The results of the listener's trial for that host.
Facts facts_of(const ListenerTrial& trial, std::size_t machine);

/// Turns each version, driver or number of GPUs that differs from most hosts' into a warning.
void mark_differences(std::vector<Facts>& facts);

/// The worst of a host's verdicts.
Verdict worst_of(const Facts& facts);

/// A fact that several hosts share.
struct FoldedFact {
  std::string name;
  std::string value;
  Verdict verdict = Verdict::well;
  std::string hint;
  std::vector<ssh::Host> hosts;
};

/// Shows equal facts once, and quantities of one verdict as a range. Names keep the order of their
/// first appearance; under each name the value of most hosts comes first.
std::vector<FoldedFact> fold_facts(const std::vector<ssh::Host>& hosts,
                                   const std::vector<Facts>& facts);

}  // namespace dtool::cli
