// What `dtool check` finds on hosts as facts with a verdict each, and many hosts' facts folded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/check.h"
#include "cli/run/listener_trial.h"
#include "ssh/host.h"

namespace dtool::cli {

/// What a fact means for a run.
enum class Verdict { well, warning, failure };

/// `well`, `warning` or `failure`, as `--json` has it.
const char* name_of(Verdict verdict);

enum class Unit { count, gibibytes, seconds };

/// A fact that is a number. Those of several hosts are shown as a range.
struct Quantity {
  double number = 0;
  Unit unit = Unit::count;
  double uncertainty = 0;
};

/// One thing about one host.
struct Fact {
  std::string name;   ///< `log-in`, `rsync`; not unique: a host may have two faults of a kind
  std::string value;  ///< empty if `quantity` says it
  Verdict verdict = Verdict::well;
  std::string hint = {};  ///< how to mend it, perhaps with ssh::kHostsInHint
  std::optional<Quantity> quantity = {};
};

using Facts = std::vector<Fact>;

/// What one host told when it was looked at, `machine` being its id.
Facts facts_of(const Checked& checked, const Needs& needs, std::size_t machine);

/// What the listener's trial told of that host.
Facts facts_of(const ListenerTrial& trial, std::size_t machine);

/// Makes a warning of each version, driver or number of GPUs that is not what most hosts have.
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

/// Like facts once, quantities of one verdict as a range; in the order in which facts first appear,
/// under each name what most hosts have first.
std::vector<FoldedFact> fold_facts(const std::vector<ssh::Host>& hosts,
                                   const std::vector<Facts>& facts);

}  // namespace dtool::cli
