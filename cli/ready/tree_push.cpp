// SPDX-License-Identifier: MIT
#include "cli/ready/tree_push.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "cli/console.h"
#include "cli/host_output.h"

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

namespace {

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

}  // namespace

void SendingProgress::sent(std::size_t host, const ssh::Transferred& what, Clock::time_point now) {
  if (!begun_) begun_ = now;
  hosts_.at(host).sent = what;
}

void SendingProgress::done(std::size_t host) {
  hosts_.at(host).is_done = true;
}

SendingProgress::Sums SendingProgress::sums() const {
  auto [done, sent, all] = Sums();
  for (const Host& host : hosts_) {
    if (host.is_done) ++done;
    sent += host.sent.bytes;
    const auto expected = host.is_done ? host.sent.bytes : host.sent.all;
    all = all && expected ? std::optional(*all + *expected) : std::nullopt;
  }
  return {done, sent, all};
}

std::string SendingProgress::amounts() const {
  const auto [done, sent, all] = sums();
  const std::string line =
      fmt::format("{}: {} of {} hosts, {:.1f}", doing_, done, hosts_.size(), megabytes(sent));
  return line + (all && *all > 0
                     ? fmt::format(" of {:.1f} MB ({} %)", megabytes(*all), 100 * sent / *all)
                     : " MB");
}

std::string SendingProgress::line(Clock::time_point now) const {
  const auto [done, sent, all] = sums();
  std::string line = amounts();
  const std::chrono::duration<double> seconds = now - begun_.value_or(now);
  if (seconds.count() < 1) return line;
  line += fmt::format(", {:.1f} MB/s", megabytes(sent) / seconds.count());
  if (all && sent > 0 && *all > sent) {
    const double rest = static_cast<double>(*all - sent) / static_cast<double>(sent);
    line += fmt::format(
        ", {} left", duration_text(static_cast<std::int64_t>(std::ceil(rest * seconds.count()))));
  }
  return line;
}

void SendingReporter::on_progress(std::size_t host, const ssh::Transferred& sent) {
  // A thousand hosts tell of twenty thousand pieces, and the line is about all of them.
  constexpr std::chrono::milliseconds kShowEvery{50};
  constexpr std::uint64_t kMuch = 20'000'000;
  if (!large_.empty() && std::max(sent.bytes, sent.all.value_or(0)) > kMuch)
    console_.note(std::exchange(large_, {}));
  const auto now = SendingProgress::Clock::now();
  sending_.sent(host, sent, now);
  if (now - shown_ < kShowEvery) return;
  shown_ = now;
  console_.progress(sending_.line(now));
}

void SendingReporter::on_result(std::size_t host, const ssh::HostResult& /*result*/) {
  sending_.done(host);
  console_.progress(sending_.line(SendingProgress::Clock::now()));
}

void SendingReporter::on_silence(const std::vector<std::size_t>& waiting) {
  console_.progress(sending_.amounts() + waiting_for(hosts_, waiting));
}

void SendingReporter::on_interrupt(const std::vector<std::size_t>& /*running*/) {
  console_.note(on_interrupt_);
}

}  // namespace dtool::cli
