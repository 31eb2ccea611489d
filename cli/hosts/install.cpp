// SPDX-License-Identifier: MIT
// `dtool install`: sends the bundled trainer to hosts that have none, before a run needs it.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/plan/code_tree.h"
#include "cli/ready/check_hosts.h"
#include "cli/ready/tree_push.h"

namespace dtool::cli {
namespace {

class InstallAction : public Action {
 public:
  void add_options(Options& command) override {
    add_host_options(command, hosts_);
    add_environment_flags(command, environment_);
  }
  int run(Invocation& invocation) override;

 private:
  HostOptions hosts_;
  EnvironmentFlags environment_;
};

/// Every host that can be given the trainer gets it, whatever the others say.
SuppliedHosts install(Console& console, ssh::Remote& remote, const Environment& environment,
                      const std::string& code_path) {
  Needs needs;
  for (const ssh::Host& host : remote.hosts())
    needs.code_folders.push_back(code_folder(host, code_path));
  needs.environment = without_sent(environment, needs.code_folders.front());
  needs.environment_comes_later = has_sent(environment, needs.code_folders.front());
  needs.trainer = true;
  needs.session = false;
  offer_trainer(needs);
  const auto goes_on = [](const std::vector<Checked>&, std::string_view) { return true; };
  const auto no_push = [] { return nullptr; };
  return check_and_supply(console, remote, needs, goes_on, no_push);
}

int InstallAction::run(Invocation& invocation) {
  const auto targets = choose_targets(hosts_, invocation.settings.all());
  if (!targets) throw UsageError("no hosts were named", "--runs_on names them");
  if (!std::filesystem::exists(trainer_beside())) {
    throw UsageError(fmt::format("this machine has no trainer to send: there is no {}",
                                 trainer_beside().string()),
                     "install dtool with its trainer here");
  }
  const Environment environment = make_environment(environment_, invocation.settings.all());
  Console& console = invocation.console;
  const auto remote = invocation.reach(targets->hosts, targets->connect);
  const auto [checked, is_sent, went_on] =
      install(console, *remote, environment, invocation.settings.all().code_path.value_or(""));
  const std::vector<ssh::HostResult> results = results_of(checked);
  const int exit_code = exit_code_of(results, *remote);
  std::map<std::string, std::vector<ssh::Host>> lines;
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < checked.size(); ++i) {
    nlohmann::json host = to_json(results[i]);
    host["trainer"] = checked[i].trainer;
    host["sent"] = is_sent[i];
    list.push_back(std::move(host));
    if (!results[i].ok()) continue;
    lines[fmt::format("{}: {}", is_sent[i] ? "sent" : "there already", checked[i].trainer)]
        .push_back(results[i].host);
  }
  if (console.json()) {
    console.document({{"exit_code", exit_code}, {"hosts", list}});
    return exit_code;
  }
  for (const auto& [line, hosts] : lines)
    console.say(fmt::format("{}  {}", console.styled(Style::bold, fold_hosts(hosts)),
                            without_controls(line)));
  report_failures(console, results, "installing the trainer");
  return exit_code;
}

}  // namespace

std::unique_ptr<Action> make_install() {
  return std::make_unique<InstallAction>();
}

}  // namespace dtool::cli
