// SPDX-License-Identifier: MIT
// `dtool check`: what each host has and lacks for a run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/hosts/check_facts.h"
#include "cli/plan/code_tree.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/ready/check_hosts.h"

namespace dtool::cli {
namespace {

/// `rsync     ! 3.1.0   h3`, and the hint below it.
void show(Console& console, const FoldedFact& fact, const std::string& name, bool is_everywhere) {
  const Style style = fact.verdict == Verdict::failure   ? Style::red
                      : fact.verdict == Verdict::warning ? Style::yellow
                                                         : Style::plain;
  const char* mark = fact.verdict == Verdict::failure   ? "x"
                     : fact.verdict == Verdict::warning ? "!"
                                                        : " ";
  const std::string hosts = fold_hosts(fact.hosts);
  const std::string value = fmt::format("{} {}", mark, fact.value);
  console.say(fmt::format("{} {}{}", console.styled(Style::bold, fmt::format("{:<14}", name)),
                          style == Style::plain ? value : console.styled(style, value),
                          is_everywhere ? "" : "   " + console.styled(Style::bold, hosts)));
  if (!fact.hint.empty()) console.say(fmt::format("{:17}hint: {}", "", hint_for(fact.hint, hosts)));
}

nlohmann::json json_of_fact(const Fact& fact, const std::string& host) {
  nlohmann::json json = {{"name", fact.name}, {"verdict", name_of(fact.verdict)}};
  if (!fact.hint.empty()) json["hint"] = hint_for(fact.hint, host);
  if (!fact.quantity) {
    json["value"] = fact.value;
    return json;
  }
  static const char* const kUnits[] = {"count", "GiB", "s"};
  json["value"] = fact.quantity->number;
  json["unit"] = kUnits[static_cast<std::size_t>(fact.quantity->unit)];
  if (fact.quantity->unit == Unit::seconds) json["uncertainty"] = fact.quantity->uncertainty;
  return json;
}

class CheckAction : public Action {
 public:
  void add_options(Options& command) override {
    add_host_options(command, hosts_);
    command.add_option("--distributed_ip_and_port", listener_,
                       "where rank 0 would listen: IP:PORT of the first host, or auto (auto)");
    add_environment_flags(command, environment_);
    command.add_option("--code_path,--allenact_path PATH", code_path_,
                       "where the current folder would go on the hosts");
    command.add_flag("--no_trainer", no_trainer_,
                     "for programs of your own: do not look for the bundled trainer");
  }

  int run(Invocation& invocation) override {
    const auto targets = choose_targets(hosts_, invocation.settings.all());
    if (!targets) throw UsageError("no hosts were named", "--runs_on names them");
    const Needs wanted = needs(invocation.settings.all(), *targets);
    const auto remote = invocation.reach(targets->hosts, targets->connect);
    const std::vector<Facts> facts = look(invocation.console, *remote, wanted, *targets);
    int exit_code = kAllWell;
    for (const Facts& of_host : facts)
      if (worst_of(of_host) == Verdict::failure) exit_code = kSomeFailed;
    if (remote->interrupted()) exit_code = kInterrupted;
    return invocation.console.json()
               ? tell_json(invocation.console, targets->hosts, facts, exit_code)
               : tell(invocation.console, targets->hosts, facts, exit_code);
  }

 private:
  Needs needs(const Settings& settings, const Targets& targets) {
    const auto use = [](const std::string& flag, const std::optional<std::string>& setting) {
      return flag.empty() ? setting.value_or("") : flag;
    };
    Needs needs;
    needs.environment = make_environment(environment_, settings);
    for (const ssh::Host& host : targets.hosts)
      needs.code_folders.push_back(code_folder(host, use(code_path_, settings.code_path)));
    needs.environment_comes_later = has_sent(needs.environment, needs.code_folders.front());
    needs.trainer = !no_trainer_;
    if (needs.trainer) offer_trainer(needs);
    needs.machines = static_cast<int>(targets.hosts.size());
    needs.facts = AskedFacts::all;
    needs.peer = peer_of(targets);
    if (listener_ != "auto") {
      const ListenerAddress given = parse_listener(listener_, targets);
      address_ = given.address;
      needs.port = given.port;
    }
    return needs;
  }

  std::vector<Facts> look(Console& console, ssh::Remote& remote, const Needs& needs,
                          const Targets& targets) {
    std::vector<Checked> checked = check_hosts(console, remote, needs);
    std::string bundle_text;
    if (std::ranges::any_of(checked, &Checked::awaits_trainer)) {
      const BundleForHosts found = bundle_for(console, needs, checked);
      bundle_text = fmt::format("none; dtool run sends it ({:.0f} MB)",
                                static_cast<double>(found.bundle.bytes) / 1e6);
      if (found.bundle.pytorch)
        bundle_text += fmt::format(", to use PyTorch {} there", found.bundle.pytorch->version);
    }
    TrialPlan plan;
    for (std::size_t i = 0; i < checked.size(); ++i)
      if (checked[i].reply) plan.hosts.push_back(i);
    const Checked& first = checked.front();
    if (address_.empty()) address_ = checked.size() == 1 ? "127.0.0.1" : first.address;
    port_ = first.port;
    const bool may_listen = first.reply && !first.reply->is_port_taken && port_ != 0;
    if (may_listen && plan.hosts.size() > 1) plan.address = address_;
    plan.port = port_;
    // A round of `width` unreachable hosts takes some seconds.
    plan.listens += std::chrono::seconds(8 * (checked.size() / targets.connect.width));
    const ListenerTrial trial = try_listener(console, remote, plan);
    std::vector<Facts> facts;
    for (std::size_t i = 0; i < checked.size(); ++i) {
      facts.push_back(facts_of(checked[i], needs, i, bundle_text));
      for (Fact& fact : facts_of(trial, i)) facts.back().push_back(std::move(fact));
    }
    mark_differences(facts);
    return facts;
  }

  int tell(Console& console, const std::vector<ssh::Host>& hosts, const std::vector<Facts>& facts,
           int exit_code) const {
    console.say(fmt::format("{}: {}", console.styled(Style::bold, fold_hosts(hosts)),
                            counted(hosts.size(), "host")));
    std::size_t warnings = 0;
    std::string last;
    for (const FoldedFact& fact : fold_facts(hosts, facts)) {
      show(console, fact, fact.name == last ? "" : fact.name, fact.hosts.size() == hosts.size());
      last = fact.name;
      if (fact.verdict == Verdict::warning) ++warnings;
    }
    std::vector<ssh::Host> unfit;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (worst_of(facts[i]) == Verdict::failure) unfit.push_back(hosts[i]);
    if (!unfit.empty()) {
      console.fail(fmt::format("{} of {} {} not fit for a run: {}", unfit.size(),
                               counted(hosts.size(), "host"), unfit.size() == 1 ? "is" : "are",
                               fold_hosts(unfit)));
    } else {
      console.note(warnings == 0
                       ? "all well"
                       : fmt::format("fit for a run, with {}", counted(warnings, "warning")));
    }
    return exit_code;
  }

  int tell_json(Console& console, const std::vector<ssh::Host>& hosts,
                const std::vector<Facts>& facts, int exit_code) const {
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const std::string name = ssh::to_string(hosts[i]);
      nlohmann::json of_host = nlohmann::json::array();
      for (const Fact& fact : facts[i]) of_host.push_back(json_of_fact(fact, name));
      list.push_back(
          {{"host", name}, {"verdict", name_of(worst_of(facts[i]))}, {"facts", of_host}});
    }
    nlohmann::json document = {{"exit_code", exit_code}, {"hosts", list}};
    RunPlan plan;
    plan.address = address_;
    plan.port = port_;
    document["distributed_ip_and_port"] =
        address_.empty() || port_ == 0 ? nlohmann::json() : nlohmann::json(listener_of(plan));
    console.document(document);
    return exit_code;
  }

  HostOptions hosts_;
  std::string listener_ = "auto";
  EnvironmentFlags environment_;
  std::string code_path_;
  bool no_trainer_ = false;
  std::string address_;  ///< the address where rank 0 would listen; empty: not known
  std::uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<Action> make_check() {
  return std::make_unique<CheckAction>();
}

}  // namespace dtool::cli
