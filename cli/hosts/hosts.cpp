// SPDX-License-Identifier: MIT
// `dtool hosts`: prints the hosts that patterns and groups name, and reaches none of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"

namespace dtool::cli {
namespace {

class HostsAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option(
        "HOSTS", patterns_,
        "hosts: a,b  gpu[1-8]!gpu3  n[0-14/2]  @group  @*  (runs_on of your settings)");
    const Option fold =
        command.add_flag("-b,--fold", fold_, "print patterns, as gpu[1-8], on a line");
    command.add_flag("-c,--count", count_, "print how many they are").excludes(fold);
    add_pick_option(command, pick_);
    command.footer(
        "Hosts are joined from left to right: ',' and, '!' without, '&' in both, '^' in one "
        "of both. The shell wants quotes: dtool hosts '@lab!gpu3'");
  }

  int run(Invocation& invocation) override {
    const Settings& settings = invocation.settings.all();
    if (patterns_.empty() && !settings.runs_on)
      throw UsageError("no hosts were named", "dtool hosts 'gpu[1-8]!gpu3' prints seven");
    const std::string patterns =
        patterns_.empty() ? *settings.runs_on : fmt::format("{}", fmt::join(patterns_, ","));
    Targets targets;
    targets.hosts = ssh::parse_set(patterns, group_lookup(settings));
    targets.slots.resize(targets.hosts.size());
    if (pick_ > 0) pick_hosts(pick_, targets);
    std::vector<std::string> names;
    for (const ssh::Host& each : targets.hosts) names.push_back(ssh::to_string(each));
    Console& console = invocation.console;
    if (console.json()) {
      console.document({{"hosts", names},
                        {"count", names.size()},
                        {"folded", ssh::fold(names)},
                        {"exit_code", kAllWell}});
    } else if (count_) {
      console.write(fmt::format("{}\n", names.size()));
    } else if (names.empty()) {
      console.note(fmt::format("'{}' leaves no host", patterns));
    } else {
      console.write(fold_ ? ssh::fold(names) + "\n" : fmt::format("{}\n", fmt::join(names, "\n")));
    }
    return kAllWell;
  }

 private:
  std::vector<std::string> patterns_;
  bool fold_ = false;
  bool count_ = false;
  std::size_t pick_ = 0;
};

}  // namespace

std::unique_ptr<Action> make_hosts() {
  return std::make_unique<HostsAction>();
}

}  // namespace dtool::cli
