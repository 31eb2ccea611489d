// `dtool list`: recorded runs, newest first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/recorded.h"
#include "ssh/host.h"

namespace dtool::cli {
namespace {

std::string hosts_of(const killfiles::Killfile& killfile) {
  std::vector<ssh::Host> hosts;
  for (const killfiles::Machine& machine : killfile.machines)
    hosts.push_back(ssh::parse_host(machine.host));
  return fold_hosts(hosts);
}

class ListAction : public Action {
 public:
  void add_options(CLI::App&) override {}
  int run(Invocation& invocation) override;

 private:
  static void show(Console& console, const std::vector<killfiles::Listed>& runs);
  static void show_json(Console& console, const std::vector<killfiles::Listed>& runs);
};

void ListAction::show(Console& console, const std::vector<killfiles::Listed>& runs) {
  std::size_t width = 3;
  for (const auto& run : runs)
    width = std::max(width, run.killfile ? run.killfile->run_id.size() : 0);
  const auto row = [&](std::string_view id, std::string_view started, std::string_view machines,
                       std::string_view hosts) {
    return fmt::format("{:<{}}  {:<20}  {:>8}  {}", id, width, started, machines, hosts);
  };
  console.say(console.styled(Style::bold, row("RUN", "STARTED", "MACHINES", "HOSTS")));
  for (const auto& run : runs) {
    if (!run.killfile) continue;
    console.say(row(run.killfile->run_id, run.killfile->created,
                    std::to_string(run.killfile->machines.size()), hosts_of(*run.killfile)));
  }
}

void ListAction::show_json(Console& console, const std::vector<killfiles::Listed>& runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& run : runs) {
    nlohmann::json entry = {{"killfile", run.file.string()}};
    if (run.killfile) {
      entry.update({{"run_id", run.killfile->run_id},
                    {"created", run.killfile->created},
                    {"what", run.killfile->what},
                    {"machines", run.killfile->machines.size()},
                    {"hosts", hosts_of(*run.killfile)}});
    } else {
      entry["error"] = run.error;
    }
    list.push_back(std::move(entry));
  }
  console.document({{"runs", list}});
}

int ListAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  const std::vector<killfiles::Listed> runs = killfiles::list(killfile_folder());
  if (console.json()) {
    show_json(console, runs);
  } else if (runs.empty()) {
    console.note(fmt::format("no run is recorded in {}", killfile_folder().string()));
  } else {
    show(console, runs);
  }
  bool all_read = true;
  for (const auto& run : runs) {
    if (run.killfile) continue;
    all_read = false;
    if (!console.json())
      console.fail(run.error, "mend it, or remove it if nothing of that run is left");
  }
  return all_read ? kAllWell : kSomeFailed;
}

}  // namespace

std::unique_ptr<Action> make_list() {
  return std::make_unique<ListAction>();
}

}  // namespace dtool::cli
