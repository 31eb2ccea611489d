// SPDX-License-Identifier: MIT
// `dtool disconnect`: ends the connections that are kept for later commands.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "ssh/fanout/kept_connections.h"

namespace dtool::cli {
namespace {

class DisconnectAction : public Action {
 public:
  void add_options(Options& command) override { add_host_options(command, hosts_); }
  int run(Invocation& invocation) override;

 private:
  HostOptions hosts_;
};

int DisconnectAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  const bool is_all = hosts_.runs_on.empty() && hosts_.hostfile.empty();
  Settings settings = is_all ? invocation.settings.users().settings : invocation.settings.all();
  if (is_all)
    settings.runs_on.reset();  // hosts that a run would take by default are not named here
  const std::optional<Targets> targets = choose_targets(hosts_, settings);
  std::optional<std::vector<ssh::Host>> hosts;
  if (targets) hosts = targets->hosts;
  const auto [ended, silent] =
      ssh::end_kept_connections(hosts, targets ? targets->connect : ssh::ConnectOptions{});
  const int exit_code = silent.empty() ? kAllWell : kSomeFailed;
  nlohmann::json list = nlohmann::json::array();
  std::vector<ssh::Host> closed;
  std::vector<ssh::Host> in_use;
  for (const ssh::EndedConnection& each : ended) {
    (each.is_in_use ? in_use : closed).push_back(each.host);
    list.push_back({{"host", ssh::to_string(each.host)},
                    {"target", each.target},
                    {"state", each.is_in_use ? "in_use" : "closed"}});
  }
  if (console.json()) {
    console.document({{"connections", list}, {"silent_keepers", silent}, {"exit_code", exit_code}});
    return exit_code;
  }
  if (ended.empty() && silent.empty()) {
    console.note(hosts ? fmt::format("no connection to {} is kept", fold_hosts(*hosts))
                       : "no connection is kept");
  }
  if (!closed.empty())
    console.note(
        fmt::format("closed {}: {}", counted(closed.size(), "connection"), fold_hosts(closed)));
  if (!in_use.empty()) {
    console.note(fmt::format("{} in use by commands that run, and closed after them: {}",
                             counted(in_use.size(), "connection"), fold_hosts(in_use)));
  }
  if (!silent.empty()) {
    const bool is_one = silent.size() == 1;
    console.fail(
        fmt::format(
            "{} not answer: {} {}; what {} is not known",
            is_one ? "a process that keeps connections does" : "processes that keep connections do",
            is_one ? "pid" : "pids", fmt::join(silent, ", "), is_one ? "it keeps" : "they keep"),
        fmt::format("stopped processes go on with kill -CONT {}; then run dtool "
                    "disconnect again",
                    fmt::join(silent, " ")));
  }
  return exit_code;
}

}  // namespace

std::unique_ptr<Action> make_disconnect() {
  return std::make_unique<DisconnectAction>();
}

}  // namespace dtool::cli
