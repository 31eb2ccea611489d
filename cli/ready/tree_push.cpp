// SPDX-License-Identifier: MIT
#include "cli/ready/tree_push.h"

#include <fmt/format.h>

#include <set>

#include "cli/failures.h"
#include "cli/ready/sending_progress.h"
#include "cli/terminal_text.h"

namespace dtool::cli {

TreePush::TreePush(Console& console, const std::vector<ssh::Host>& hosts,
                   const tree_sync::Tree& tree,
                   const std::vector<tree_sync::Destination>& destinations, Sending sending)
    : console_(console),
      hosts_(hosts),
      what_(sending.what),
      reporter_(console, "sending " + sending.what, hosts, "interrupted: nothing is started",
                sending.large) {
  std::vector<bool> gets_it(hosts.size());
  for (const tree_sync::Destination& each : destinations) gets_it.at(each.host) = true;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (!gets_it[i]) reporter_.done(i);
  steps_ = tree_sync::make_push(hosts, tree, destinations, reporter_, {}, sending.relay,
                                sending.foreign);
}

std::vector<ssh::HostResult> TreePush::finish(ssh::Remote& remote) {
  auto results = steps_->finish(remote);
  console_.progress("");
  note_missed(console_, hosts_, steps_->missed(), what_);
  return results;
}

/// One line, however many hosts it was: of the reasons the first few.
void note_missed(Console& console, const std::vector<ssh::Host>& hosts,
                 const std::vector<tree_sync::Missed>& missed, std::string_view what) {
  constexpr std::size_t kReasons = 3;
  constexpr std::size_t kLongest = 200;  // bytes of what a host says
  std::set<std::size_t> indices;
  std::set<std::string> reasons;
  std::string told;
  for (const tree_sync::Missed& each : missed) {
    indices.insert(each.host);
    const bool is_new = reasons.insert(each.reason).second;
    if (!is_new || reasons.size() > kReasons) continue;
    told += fmt::format("{}{}: {}", told.empty() ? "" : "; ", ssh::to_string(hosts.at(each.host)),
                        without_controls(each.reason).substr(0, kLongest));
  }
  if (indices.empty()) return;
  std::vector<ssh::Host> names;
  for (const std::size_t index : indices) names.push_back(hosts.at(index));
  console.note(fmt::format(
      "{}: a part of {} was not passed on there as planned, and came another way ({}{})",
      fold_hosts_in_short(names), what, told, reasons.size() > kReasons ? "; …" : ""));
}

std::vector<ssh::HostResult> send_tree(Console& console, ssh::Remote& remote,
                                       const tree_sync::Tree& tree,
                                       const std::vector<tree_sync::Destination>& destinations,
                                       Sending sending) {
  TreePush push(console, remote.hosts(), tree, destinations, std::move(sending));
  std::vector<ssh::Task> tasks;
  for (const auto& each : destinations) tasks.push_back(push.steps().first_task(each.host));
  ssh::RunOptions options;
  options.on_interrupt = ssh::OnInterrupt::leave;
  remote.run(std::move(tasks), push.steps(), options);
  return push.finish(remote);
}

std::vector<ssh::HostResult> send_to_store(Console& console, ssh::Remote& remote,
                                           const tree_sync::Tree& tree, std::string what,
                                           const std::string& folder,
                                           const std::vector<std::size_t>& places) {
  std::vector<tree_sync::Destination> destinations;
  for (const std::size_t place : places) destinations.push_back({place, folder});
  // Part of a sending that was interrupted is no edit of the user's.
  return send_tree(
      console, remote, tree, destinations,
      {std::move(what), tree_sync::Relay::where_it_pays, tree_sync::Foreign::overwrite});
}

}  // namespace dtool::cli
