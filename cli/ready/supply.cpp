// SPDX-License-Identifier: MIT
#include "cli/ready/supply.h"

#include <algorithm>
#include <utility>

#include "cli/ready/tree_push.h"

namespace dtool::cli {
namespace {

constexpr std::string_view kChecking = "checking the hosts";

/// Sends the bundle to the hosts at those places; a failure becomes theirs.
void send_to(Console& console, ssh::Remote& remote, const BundleForHosts& found,
             std::vector<Checked>& checked) {
  const auto sent = send_to_store(console, remote, make_tree(found.bundle), "the trainer",
                                  folder_of(found.bundle), found.places);
  for (std::size_t i = 0; i < sent.size(); ++i)
    if (!sent[i].ok()) checked[found.places[i]].result = sent[i];
}

}  // namespace

SuppliedHosts check_and_supply(Console& console, ssh::Remote& remote, Needs needs,
                               const GoesOn& goes_on, const NextPush& next_push) {
  SuppliedHosts hosts;
  hosts.is_sent.resize(remote.hosts().size());
  const auto may_go_on = [&](std::string_view doing) {
    hosts.went_on = goes_on(hosts.checked, doing);
    return hosts.went_on;
  };
  hosts.checked = check_hosts(console, remote, needs, next_push());
  if (!may_go_on(kChecking) || std::ranges::none_of(hosts.checked, &Checked::awaits_trainer))
    return hosts;
  console.progress("");
  const BundleForHosts found = bundle_for(console, needs, hosts.checked);
  if (!may_go_on(kChecking) || found.places.empty()) return hosts;
  send_to(console, remote, found, hosts.checked);
  if (!may_go_on("sending the trainer")) return hosts;
  needs.sends_trainer = false;
  name_bundle(found.bundle, needs);
  std::vector<Checked> again = check_hosts(console, remote, needs, next_push());
  for (std::size_t i = 0; i < again.size(); ++i)
    if (hosts.checked[i].result.ok()) hosts.checked[i] = std::move(again[i]);
  for (const std::size_t place : found.places)
    hosts.is_sent[place] = hosts.checked[place].result.ok();
  may_go_on(kChecking);
  return hosts;
}

}  // namespace dtool::cli
