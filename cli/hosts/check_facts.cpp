// SPDX-License-Identifier: MIT
#include "cli/hosts/check_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "cli/ready/check_hosts.h"
#include "ssh/wire/check.h"

namespace dtool::cli {
namespace {

constexpr double kGibibyte = 1 << 30;
constexpr double kLeastDiskGib = 1;
constexpr std::int64_t kFullDisk = 1 << 20;  ///< bytes: a run's own files would not fit
constexpr double kMostClockOffset = 1;       ///< seconds

void add_text(Facts& facts, const std::string& name, const std::string& value) {
  if (!value.empty()) facts.push_back({name, value});
}

/// Nothing if the host did not tell.
void add_bytes(Facts& facts, const std::string& name, std::int64_t bytes) {
  const Quantity gibibytes{static_cast<double>(bytes) / kGibibyte, Unit::gibibytes};
  if (bytes > 0) facts.push_back({name, "", Verdict::well, "", gibibytes});
}

void add_disk(Facts& facts, const std::string& name, std::int64_t bytes) {
  const Quantity gibibytes{static_cast<double>(std::max<std::int64_t>(bytes, 0)) / kGibibyte,
                           Unit::gibibytes};
  facts.push_back({name, "", Verdict::well, "", gibibytes});
  if (gibibytes.number >= kLeastDiskGib) return;
  facts.back().verdict = bytes >= 0 && bytes < kFullDisk ? Verdict::failure : Verdict::warning;
  facts.back().hint = "make room: logs, checkpoints and the code need some";
}

/// Adds the host's lacks of that kind; returns whether there was one.
bool add_lacks(Facts& facts, const Checked& checked, const std::string& kind) {
  bool any = false;
  for (const Lack& lack : checked.lacks) {
    if (lack.what != kind) continue;
    facts.push_back({kind, lack.error, Verdict::failure, lack.hint});
    any = true;
  }
  return any;
}

/// `2 x NVIDIA H100, 81559 MiB`; several kinds are joined by a plus.
std::string name_gpus(const std::vector<std::string>& gpus) {
  std::map<std::string, int> kinds;
  for (const std::string& each : gpus) ++kinds[each];
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", count, kind);
  return text.empty() ? "none" : text;
}

void add_machine(Facts& facts, const host::CheckReply& reply) {
  const host::Hardware& hardware = reply.hardware;
  const host::Survey& survey = *reply.survey;
  if (hardware.cores > 0) {
    facts.push_back(
        {"cores", "", Verdict::well, "", Quantity{static_cast<double>(hardware.cores)}});
  }
  add_bytes(facts, "memory", hardware.memory);
  add_bytes(facts, "memory free", survey.free_memory);
  add_disk(facts, "home free", survey.free_home);
  add_disk(facts, "code free", survey.free_code);
  if (!hardware.gpu_fault.empty()) {
    facts.push_back({"GPUs", "nvidia-smi fails: " + hardware.gpu_fault, Verdict::warning,
                     "a driver that was updated without a restart answers so"});
  } else {
    add_text(facts, "GPUs", name_gpus(hardware.gpus));
  }
  add_text(facts, "driver", hardware.driver);
}

void add_rsync(Facts& facts, const host::CheckReply& reply) {
  if (!reply.survey->rsync.empty()) return add_text(facts, "rsync", reply.survey->rsync);
  facts.push_back({"rsync", "no usable rsync: dtool fetch and dtool copy --from need it",
                   Verdict::warning, install_hint(reply.lacks.package_manager, {"rsync"})});
}

/// The program that holds a run's sessions if screen is missing.
void add_terminal(Facts& facts, const host::CheckReply& reply) {
  if (!reply.lacks.has_terminal) {
    facts.push_back({"terminal",
                     "neither screen nor tmux is there: runs go on without a terminal, and dtool "
                     "attach shows their logs",
                     Verdict::warning, install_hint(reply.lacks.package_manager, {"tmux"})});
  } else if (!reply.survey->tmux.empty()) {
    facts.push_back(
        {"terminal", fmt::format("no screen, so {} takes its place", reply.survey->tmux)});
  }
}

void add_surroundings(Facts& facts, const Checked& checked, int machines) {
  if (checked.logout_kills) {
    facts.push_back({"log-out", "the system ends what you leave running (KillUserProcesses)",
                     Verdict::warning, "on the host, to keep it: loginctl enable-linger"});
  } else {
    facts.push_back({"log-out", "processes go on"});
  }
  // PyTorch goes by the interface that dtool names; JAX on CPUs (gloo), for one, by this name.
  if (machines > 1 && !checked.reply->survey->own_name.empty()) {
    facts.push_back({"own name",
                     fmt::format("the host's own name is {} in its /etc/hosts",
                                 checked.reply->survey->own_name),
                     Verdict::warning,
                     "JAX on CPUs, for example, gives this address to the other hosts: write "
                     "the host's real address there"});
  }
  if (checked.result.log_in_said.empty()) return;
  facts.push_back({"shell's output", "the login shell prints something even without a terminal",
                   Verdict::warning,
                   "dtool leaves it out, but scp and rsync by hand take it for their own: let "
                   "~/.bashrc and its like print to terminals only ([ -t 1 ])"});
}

/// Each requested part is there, or is a lack.
void add_environment(Facts& facts, const Checked& checked, const Environment& environment) {
  for (const auto& [name, value] : rows_of(environment)) {
    if (name != "binds" && !add_lacks(facts, checked, name)) add_text(facts, name, value);
  }
}

bool may_not_differ(const std::string& name) {
  static const std::vector<std::string> names = {"bash",    "screen", "rsync",
                                                 "trainer", "GPUs",   "driver"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The most frequent value of a fact among hosts where it is well; among equally frequent ones, the
/// first.
std::string usual_value(const std::vector<Facts>& hosts, const std::string& name) {
  std::map<std::string, int> counts;
  std::string usual;
  int most = 0;
  for (const Facts& facts : hosts) {
    for (const Fact& fact : facts)
      if (fact.name == name && fact.verdict == Verdict::well)
        most = std::max(most, ++counts[fact.value]);
  }
  for (const Facts& facts : hosts) {
    for (const Fact& fact : facts)
      if (fact.name == name && usual.empty() && counts[fact.value] == most) usual = fact.value;
  }
  return usual;
}

std::string text_of(Unit unit, double number) {
  switch (unit) {
    case Unit::count:
      return fmt::format("{:.0f}", number);
    case Unit::gibibytes:
      return fmt::format("{:.1f}", number);
    case Unit::seconds:
      return fmt::format("{:+.3f}", number);
  }
  return "";
}

/// `3 to 7 GiB`
std::string range_of(const std::vector<Quantity>& quantities) {
  const auto less = [](const Quantity& a, const Quantity& b) { return a.number < b.number; };
  const auto [low, high] = std::minmax_element(quantities.begin(), quantities.end(), less);
  std::string text = text_of(low->unit, low->number);
  const std::string most = text_of(high->unit, high->number);
  if (text != most) text += " to " + most;
  if (low->unit == Unit::gibibytes) return text + " GiB";
  if (low->unit == Unit::count) return text;
  double uncertainty = 0;
  for (const Quantity& each : quantities) uncertainty = std::max(uncertainty, each.uncertainty);
  return fmt::format("{} s from the launcher's, measured to {:.3f} s", text, uncertainty);
}

}  // namespace

const char* name_of(Verdict verdict) {
  return std::array{"well", "warning", "failure"}.at(static_cast<std::size_t>(verdict));
}

Facts facts_of(const Checked& checked, const Needs& needs, std::size_t machine,
               const std::string& bundle) {
  Facts facts;
  if (!checked.reply || !checked.reply->survey) {
    facts.push_back({"log-in", checked.result.error, Verdict::failure, checked.result.hint});
    return facts;
  }
  const host::CheckReply& reply = *checked.reply;
  const host::Survey& survey = *reply.survey;
  facts.push_back({"log-in", fmt::format("as {}, {}", survey.user, survey.shell)});
  add_text(facts, "system", survey.system);
  add_text(facts, "bash", survey.bash);
  add_text(facts, "screen", survey.screen);
  add_rsync(facts, reply);
  add_terminal(facts, reply);
  add_lacks(facts, checked, "programs");
  add_lacks(facts, checked, "home");
  if (needs.trainer && !add_lacks(facts, checked, "trainer")) {
    const std::string& version = reply.trainer_version;
    add_text(facts, "trainer",
             checked.awaits_trainer()
                 ? bundle
                 : version.substr(std::min(version.size(), version.find(' ') + 1)));
  }
  add_environment(facts, checked, needs.environment);
  add_machine(facts, reply);
  add_surroundings(facts, checked, needs.machines);
  if (machine == 0 && !add_lacks(facts, checked, "port"))
    add_text(facts, "port", fmt::format("{} is free", checked.port));
  add_lacks(facts, checked, "answer");
  return facts;
}

Facts facts_of(const ListenerTrial& trial, std::size_t machine) {
  Facts facts;
  const TrialOfHost& host = trial.hosts[machine];
  const std::string where = fmt::format("{} port {}", trial.address, trial.port);
  const std::string by = host.interface.empty() ? "" : fmt::format(" by {}", host.interface);
  if (machine == 0 && !trial.fault.empty()) {
    facts.push_back({"listener", trial.fault, Verdict::failure, trial.hint});
  } else if (machine == 0 && trial.listened) {
    facts.push_back({"listener", fmt::format("listens on {}{}", where, by)});
  } else if (host.reached) {
    facts.push_back({"listener", fmt::format("reaches {}{}", where, by)});
  } else if (!host.fault.empty()) {
    facts.push_back({"listener", fmt::format("does not reach {}{}: {}", where, by, host.fault),
                     Verdict::failure,
                     "a firewall on the way or on the first host? --distributed_ip_and_port names "
                     "another of its addresses, or a port that is open"});
  }
  if (!host.clock_offset) return facts;
  Fact clock{"clock", "", Verdict::well, "",
             Quantity{*host.clock_offset, Unit::seconds, host.clock_uncertainty}};
  if (std::abs(*host.clock_offset) - host.clock_uncertainty > kMostClockOffset) {
    clock.verdict = Verdict::warning;
    clock.hint = "set it (timedatectl set-ntp true): times in logs and of files are read together";
  }
  facts.push_back(clock);
  return facts;
}

void mark_differences(std::vector<Facts>& facts) {
  for (Facts& host : facts) {
    for (Fact& fact : host) {
      if (fact.verdict != Verdict::well || !may_not_differ(fact.name)) continue;
      const std::string usual = usual_value(facts, fact.name);
      if (fact.value == usual) continue;
      fact.verdict = Verdict::warning;
      fact.hint = fact.name == "GPUs" ? "dtool run digits --nproc_per_node N sets the processes a "
                                        "machine where GPUs differ"
                                      : fmt::format("most of the others have {}", usual);
    }
  }
}

Verdict worst_of(const Facts& facts) {
  Verdict worst = Verdict::well;
  for (const Fact& fact : facts) worst = std::max(worst, fact.verdict);
  return worst;
}

std::vector<FoldedFact> fold_facts(const std::vector<ssh::Host>& hosts,
                                   const std::vector<Facts>& facts) {
  std::vector<std::string> names;
  std::vector<FoldedFact> groups;
  std::vector<std::vector<Quantity>> quantities;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (const Fact& fact : facts[i]) {
      if (std::find(names.begin(), names.end(), fact.name) == names.end())
        names.push_back(fact.name);
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const FoldedFact& group) {
        return group.name == fact.name && group.value == fact.value &&
               group.verdict == fact.verdict && group.hint == fact.hint;
      });
      const auto at = static_cast<std::size_t>(same - groups.begin());
      if (same == groups.end()) {
        groups.push_back({fact.name, fact.value, fact.verdict, fact.hint, {}});
        quantities.emplace_back();
      }
      groups[at].hosts.push_back(hosts[i]);
      if (fact.quantity) quantities[at].push_back(*fact.quantity);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (!quantities[i].empty()) groups[i].value = range_of(quantities[i]);
  const auto place = [&names](const FoldedFact& group) {
    return std::find(names.begin(), names.end(), group.name);
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const FoldedFact& a, const FoldedFact& b) {
    if (place(a) != place(b)) return place(a) < place(b);
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    return a.hosts.size() > b.hosts.size();
  });
  return groups;
}

}  // namespace dtool::cli
