// SPDX-License-Identifier: MIT
// `dtool diff`: where two runs differ in code, settings and hosts, and their last metrics side by
// side.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/record/comparison.h"
#include "cli/record/record.h"
#include "cli/watch/find_run.h"

namespace dtool::cli {
namespace {

std::string state_of(const RunRecord& run) {
  if (run.end) return run.end->state;
  if (run.state_now.empty()) return "not known to have ended";
  return (run.is_state_known ? "" : "not known: ") + run.state_now;
}

/// A row for each difference, or two where long values differ; nothing where there is none.
void tell(Console& console, std::string_view title, const std::vector<Difference>& rows) {
  if (rows.empty()) return;
  constexpr std::size_t kWidestName = 40;
  constexpr std::size_t kWidestValue = 28;
  const auto is_long = [](const Difference& each) {
    const std::size_t now = each.before.empty() ? 0 : each.now.size();
    return std::max(each.before.size(), now) > kWidestValue;
  };
  std::size_t name_width = 0;
  std::size_t before_width = 1;
  for (const Difference& each : rows) {
    name_width = std::min(kWidestName, std::max(name_width, each.name.size()));
    if (!is_long(each)) before_width = std::max(before_width, each.before.size());
  }
  console.say(console.styled(Style::bold, title));
  const auto shown = [](const std::string& value) { return value.empty() ? "-" : value; };
  for (const Difference& each : rows) {
    const std::string name = fmt::format("  {:<{}}", each.name, name_width);
    if (is_long(each)) {
      console.say(fmt::format("{}  from {}", name, shown(each.before)));
      console.say(fmt::format("{:{}}  to   {}", "", name.size(), shown(each.now)));
    } else {
      console.say(
          fmt::format("{}  {:<{}}  {}", name, shown(each.before), before_width, shown(each.now)));
    }
  }
}

nlohmann::json json_of(const std::vector<Difference>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Difference& each : rows)
    list.push_back({{"name", each.name}, {"before", each.before}, {"now", each.now}});
  return list;
}

class DiffAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", runs_, "two runs' ids or parts of them, as last-1 last").required();
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    if (runs_.size() != 2)
      throw UsageError(fmt::format("dtool diff compares two runs, and {} {} named", runs_.size(),
                                   runs_.size() == 1 ? "was" : "were"),
                       "dtool list shows the runs");
    const RunRecord before = explained_run(console, runs_[0], hosts_, invocation.settings);
    const RunRecord now = explained_run(console, runs_[1], hosts_, invocation.settings);
    const Comparison found =
        compare_runs(before, now, read_listing(before.run_id), read_listing(now.run_id));
    if (console.json()) {
      console.document({{"runs", {before.run_id, now.run_id}},
                        {"code", json_of(found.code)},
                        {"code_note", found.code_note},
                        {"settings", json_of(found.settings)},
                        {"hosts", json_of(found.hosts)},
                        {"metrics", json_of(found.metrics)}});
      return kAllWell;
    }
    console.say(fmt::format("{}  {}  {}", console.styled(Style::bold, "from"), before.run_id,
                            state_of(before)));
    console.say(
        fmt::format("{}    {}  {}", console.styled(Style::bold, "to"), now.run_id, state_of(now)));
    tell(console, "code", found.code);
    tell(console, "settings", found.settings);
    tell(console, "hosts", found.hosts);
    tell(console, "last metrics", found.metrics);
    if (found.code.empty() && found.settings.empty() && found.hosts.empty() &&
        found.code_note.empty())
      console.say("code, settings and hosts are the same");
    if (!found.code_note.empty()) console.note(found.code_note);
    return kAllWell;
  }

 private:
  HostOptions hosts_;
  std::vector<std::string> runs_;
};

}  // namespace

std::unique_ptr<Action> make_diff() {
  return std::make_unique<DiffAction>();
}

}  // namespace dtool::cli
