// SPDX-License-Identifier: MIT
// `dtool clean`: shows what dtool keeps on hosts for later runs, and deletes what is unused.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/copy/fetch_plan.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/watch/status_table.h"
#include "ssh/remote.h"
#include "ssh/wire/tree.h"

namespace dtool::cli {
namespace {

constexpr std::int64_t kDay = 86400;  // seconds

struct HostsThing {
  ssh::Host host;
  host::KeptThing thing;
};

/// What the hosts told, and the results of all hosts.
struct Found {
  std::vector<HostsThing> things;
  std::vector<ssh::HostResult> results;
};

std::string sum_of(const std::vector<HostsThing>& things,
                   const std::function<bool(const HostsThing&)>& counts) {
  std::uint64_t bytes = 0;
  std::size_t number = 0;
  for (const HostsThing& each : things) {
    if (!counts(each)) continue;
    ++number;
    bytes += each.thing.bytes;
  }
  return number == 0 ? "" : fmt::format("{} with {}", counted(number, "thing"), size_text(bytes));
}

class CleanAction : public Action {
 public:
  void add_options(Options& command) override {
    add_host_options(command, hosts_);
    command.add_flag("--delete", delete_, "delete what no run uses");
    command
        .add_option("--older_than DAYS", days_,
                    "with --delete: only what nothing has used for so many days")
        .check(must_be_from(0, 36500));
    command
        .add_option("--max_gb N", max_gb_,
                    "with --delete: the longest unused, until a host keeps N gigabytes")
        .check(must_be_from(0, 1e6));
    command.add_flag("--yes", yes_, "do not ask before deleting");
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    if (!delete_ && (days_ || max_gb_ || yes_))
      throw UsageError("--older_than, --max_gb and --yes go with --delete",
                       "without it nothing is deleted");
    if (!days_) days_ = invocation.settings.all().clean_older_than;
    if (!max_gb_) max_gb_ = invocation.settings.all().clean_max_gb;
    HostOptions hosts = hosts_;
    if (hosts.runs_on.empty() && hosts.hostfile.empty()) hosts.runs_on = "local";
    const auto targets = choose_targets(hosts, invocation.settings.all());
    const auto remote = invocation.reach(targets->hosts, targets->connect);
    Found found = ask(*remote, false);
    choose(found);
    if (delete_ && !remote->interrupted() && may_delete(console, found)) found = ask(*remote, true);
    const int exit_code = exit_code_of(found.results, *remote);
    if (console.json()) {
      nlohmann::json hosts_json = nlohmann::json::array();
      for (const ssh::HostResult& each : found.results) hosts_json.push_back(to_json(each));
      nlohmann::json things = nlohmann::json::array();
      for (const auto& [host, thing] : found.things)
        things.push_back({{"host", ssh::to_string(host)},
                          {"kind", thing.kind},
                          {"path", thing.path},
                          {"bytes", thing.bytes},
                          {"unused_s", thing.unused_s},
                          {"used_by", thing.used_by},
                          {"deleted", thing.is_deleted}});
      console.document({{"exit_code", exit_code}, {"hosts", hosts_json}, {"things", things}});
      return exit_code;
    }
    show(console, found);
    const std::string gone =
        sum_of(found.things, [](const HostsThing& each) { return each.thing.is_deleted; });
    const std::string unused =
        sum_of(found.things, [this](const HostsThing& each) { return is_chosen(each); });
    if (delete_ && !gone.empty()) console.note("deleted " + gone);
    if (!delete_ && found.things.empty() && exit_code == kAllWell) console.note("nothing is kept");
    if (!delete_ && !unused.empty())
      console.note(unused + " unused; dtool clean --delete deletes what is unused");
    report_failures(console, found.results, "looking at what is kept");
    return exit_code;
  }

 private:
  Found ask(ssh::Remote& remote, bool deletes) const {
    std::vector<ssh::Task> tasks;
    for (std::size_t i = 0; i < remote.hosts().size(); ++i) {
      const auto limit = limits_.find(ssh::to_string(remote.hosts()[i]));
      const bool may_delete = deletes && limit != limits_.end();
      tasks.push_back(
          {i, ssh::ask_host(host::KeptRequest{may_delete, may_delete ? limit->second : 0})});
    }
    Found found;
    ssh::Events events;
    found.results = remote.run(std::move(tasks), events, {});
    for (ssh::HostResult& each : found.results) {
      if (!each.ok()) continue;
      const auto reply = ssh::reply_in<host::KeptReply>(each);
      if (!reply) continue;
      for (const host::KeptThing& thing : reply->things) found.things.push_back({each.host, thing});
    }
    return found;
  }

  void choose(const Found& found) {
    const auto least = std::max<std::int64_t>(host::kLeastUnused,
                                              static_cast<std::int64_t>(days_.value_or(0) * kDay));
    std::map<std::string, std::vector<const host::KeptThing*>> of_host;
    for (const HostsThing& each : found.things)
      of_host[ssh::to_string(each.host)].push_back(&each.thing);
    for (auto& [host, things] : of_host) {
      limits_[host] = least;
      if (!max_gb_) continue;
      limits_[host] = std::numeric_limits<std::int64_t>::max();
      double left = 0;
      for (const auto* each : things) left += static_cast<double>(each->bytes);
      std::ranges::sort(things, std::greater(), &host::KeptThing::unused_s);
      for (const auto* each : things) {
        if (left <= *max_gb_ * 1e9 || each->unused_s <= least) break;
        if (!each->used_by.empty()) continue;
        left -= static_cast<double>(each->bytes);
        limits_[host] = each->unused_s - 1;
      }
    }
  }

  bool is_chosen(const HostsThing& each) const {
    // A host may answer the second question alone.
    const auto limit = limits_.find(ssh::to_string(each.host));
    return limit != limits_.end() && each.thing.used_by.empty() &&
           each.thing.unused_s > limit->second;
  }

  /// Asks the user, once it is known what there is.
  bool may_delete(Console& console, const Found& found) const {
    const std::string all =
        sum_of(found.things, [this](const HostsThing& each) { return is_chosen(each); });
    if (all.empty()) {
      console.note(
          max_gb_ ? fmt::format("no host keeps more than {} GB of what can be deleted", *max_gb_)
                  : "nothing can be deleted: all is in use, or was within the hour");
      return false;
    }
    if (yes_) return true;
    const std::optional<bool> answer = console.ask(fmt::format("delete {}?", all));
    if (!answer) throw UsageError(fmt::format("{} would be deleted", all), "--yes deletes them");
    if (!*answer) console.note("nothing was deleted");
    return *answer;
  }

  void show(Console& console, const Found& found) const {
    std::vector<TableRow> rows;
    for (const auto& [host, thing] : found.things) {
      const std::string state = thing.is_deleted         ? "deleted"
                                : !thing.used_by.empty() ? "used by " + thing.used_by
                                                         : "";
      rows.push_back(
          {{ssh::to_string(host), thing.kind, size_text(thing.bytes), duration_text(thing.unused_s),
            without_controls(state), without_controls(thing.path)}});
    }
    if (rows.empty()) return;
    const TableForm form{{{.title = "HOST", .stays = true},
                          {.title = "KIND", .stays = true},
                          {.title = "SIZE", .is_number = true, .stays = true},
                          {.title = "UNUSED FOR", .is_number = true},
                          {.title = "STATE"},
                          {.title = "PATH"}},
                         0,
                         {},
                         20};
    const std::size_t room =
        console.is_terminal(To::out) ? terminal_size(STDOUT_FILENO).columns : 0;
    for (const std::string& line : table_lines(console, form, rows, room)) console.say(line);
  }

  HostOptions hosts_;
  bool delete_ = false;
  bool yes_ = false;
  std::optional<double> days_;
  std::optional<double> max_gb_;  ///< for each host
  /// What nothing has used for longer than so many seconds is deleted, for each host that answered.
  std::map<std::string, std::int64_t> limits_;
};

}  // namespace

std::unique_ptr<Action> make_clean() {
  return std::make_unique<CleanAction>();
}

}  // namespace dtool::cli
