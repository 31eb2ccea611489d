// SPDX-License-Identifier: MIT
#include "sync/relay/relay_tree.h"

#include <algorithm>
#include <utility>

namespace dtool::tree_sync {

bool RelayTree::is_starved(const Member& member, Time now) {
  return !member.has_all && now - member.heard >= kSilence;
}

bool RelayTree::is_alive(const Member& member, Time now) {
  return member.is_receiving && !is_starved(member, now);
}

RelayTree::Source RelayTree::begin(Member& member, Time now, std::optional<std::size_t> parent) {
  member.is_receiving = true;
  member.begun = ++begun_;
  ++member.tries;
  member.serving = Serving::unknown;
  member.has_all = false;
  member.since = member.heard = now;
  member.parent = parent;
  if (!parent) return {From::launcher};
  ++members_.at(*parent).children;
  return {From::host, *parent};
}

/// The one that serves fewest; of those the one that began first, which is nearest to the launcher.
std::optional<std::size_t> RelayTree::best_parent(const Member& member, Time now) const {
  std::optional<std::size_t> best;
  for (const std::size_t host : serving_) {
    const Member& parent = members_.at(host);
    const bool serves = parent.serving == Serving::yes && is_alive(parent, now);
    if (!serves || parent.failed >= kFailed || member.avoids.contains(host)) continue;
    if (!best || parent.children < members_.at(*best).children) best = host;
  }
  return best;
}

/// Whether a host has begun that may serve others, and has not said so yet.
bool RelayTree::expects_parents(Time now) const {
  return std::any_of(members_.begin(), members_.end(), [now](const auto& each) {
    const Member& member = each.second;
    return member.is_receiving && member.serving == Serving::unknown && member.failed < kFailed &&
           now - member.since < kSilence;
  });
}

RelayTree::Source RelayTree::source_for(std::size_t host, Time now, Sum sum) {
  Member& member = members_.try_emplace(host, Member{.since = now}).first->second;
  if (member.misses >= kMisses || member.tries >= kTries) return begin(member, now, std::nullopt);
  const auto parent = best_parent(member, now);
  if (!parent && !expects_parents(now)) return begin(member, now, std::nullopt);
  if (!parent || sum == Sum::unknown) return {};
  const bool has_room = members_.at(*parent).children < kFanOut;
  if (has_room || now - member.since >= kCrowded) return begin(member, now, parent);
  return {};
}

void RelayTree::serves(std::size_t host) {
  Member& member = members_.at(host);
  if (member.serving == Serving::yes) return;
  member.serving = Serving::yes;
  serving_.push_back(host);
}

void RelayTree::serves_nobody(std::size_t host) {
  members_.at(host).serving = Serving::no;
}

void RelayTree::got_more(std::size_t host, Time now) {
  members_.at(host).heard = now;
}

void RelayTree::got_all(std::size_t host) {
  members_.at(host).has_all = true;
}

void RelayTree::ended(std::size_t host, End end, Time now) {
  Member& member = members_.at(host);
  member.is_receiving = false;
  std::erase(serving_, host);
  const auto parent = std::exchange(member.parent, std::nullopt);
  if (parent) --members_.at(*parent).children;
  if (end == End::over) return;
  member.since = member.heard;
  member.missed_at = begun_;
  if (!parent) return;
  Member& of = members_.at(*parent);
  if (of.missed_at >= member.begun || (end == End::missed && is_starved(of, now))) return;
  ++member.misses;
  member.avoids.insert(*parent);
  of.failed += end == End::spoilt ? kFailed : 1;
}

}  // namespace dtool::tree_sync
