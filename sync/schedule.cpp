// SPDX-License-Identifier: MIT
#include "sync/schedule.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace dtool::tree_sync {

bool Schedule::is_starved(const Part& part, Time now) {
  return !part.has_all && now - part.heard >= kSilence;
}

bool Schedule::is_alive(const Part& part, Time now) {
  return (part.is_receiving || part.has_all) && !is_starved(part, now);
}

bool Schedule::is_slow(std::size_t host) const {
  return members_[host].is_limited && members_[host].rate < kSlow * fast_;
}

Schedule::Source Schedule::begin(std::size_t host, std::size_t parcel, Time now,
                                 std::optional<std::size_t> parent) {
  Part& part = part_of(host, parcel);
  takers_[parcel].push_back(host);
  part.is_receiving = true;
  part.begun = ++begun_;
  ++part.tries;
  part.has_all = false;
  part.bytes = 0;
  part.since = part.heard = now;
  part.parent = part.sender = parent;
  part.depth = parent ? parts_.at(parcel)[*parent].depth + 1 : 0;
  if (!parent) {
    if (!std::exchange(members_[host].was_head, true)) ++heads_;
    return {From::launcher};
  }
  Member& of = members_[*parent];
  if (is_slow(host))
    of.slow_ones.insert(host);
  else
    ++of.children;
  return {From::host, *parent};
}

/// Its parent has a hand free again.
void Schedule::let_go(std::size_t host, Part& part) {
  const auto parent = std::exchange(part.parent, std::nullopt);
  if (!parent) return;
  Member& of = members_[*parent];
  if (of.slow_ones.erase(host) == 0) --of.children;
}

/// What goes through a slow host comes slowly.
bool Schedule::may_serve(std::size_t parent, std::size_t host) const {
  return !is_slow(parent) || is_slow(host);
}

bool Schedule::has_room(std::size_t parent, std::size_t host) const {
  const Member& of = members_[parent];
  return is_slow(host) ? of.slow_ones.empty() : of.children == 0;
}

/// Whether the bytes that a host lacks are on their way to it, and not through the other one: so
/// after a failure hosts do not wait for each other in a circle.
bool Schedule::is_fed(std::size_t host, std::size_t other, std::size_t parcel) const {
  const std::vector<Part>& parts = parts_.at(parcel);
  for (const Part* part = &parts[host]; !part->has_all; part = &parts[*part->sender]) {
    if (!part->is_receiving || part->sender == other) return false;
    if (!part->sender) break;
  }
  return true;
}

bool Schedule::can_serve(std::size_t parent, std::size_t host, std::size_t parcel, Time now) const {
  const Part& part = parts_.at(parcel)[parent];
  const Member& member = members_[parent];
  const bool is_too_deep = part.bytes == 0 && !part.has_all && part.depth >= kDeep;
  return member.serving == Serving::yes && is_alive(part, now) && !is_too_deep &&
         member.failed < kFailed && !members_[host].avoids.contains(parent) &&
         may_serve(parent, host);
}

/// The end of a chain, where one is looked for first. A fast one before a slow one.
std::optional<std::size_t> Schedule::find_free(std::size_t host, std::size_t parcel,
                                               Time now) const {
  std::optional<std::size_t> slow;
  for (const std::size_t each : takers_.at(parcel) | std::views::reverse) {
    const bool is_free = has_room(each, host) && can_serve(each, host, parcel, now);
    if (!is_free || (slow && is_slow(each)) || !is_fed(each, host, parcel)) continue;
    if (!is_slow(each)) return each;
    slow = each;
  }
  return slow;
}

/// The one that serves fewest, a fast one before a slow one; of those the one that began first,
/// which is nearest to the launcher.
std::optional<std::size_t> Schedule::find_any(std::size_t host, std::size_t parcel,
                                              Time now) const {
  std::optional<std::size_t> best;
  std::pair<bool, std::size_t> least;
  for (const std::size_t each : takers_.at(parcel)) {
    const Member& member = members_[each];
    const std::pair served{is_slow(each),
                           is_slow(host) ? member.slow_ones.size() : member.children};
    if (best && served >= least) continue;
    if (!can_serve(each, host, parcel, now) || !is_fed(each, host, parcel)) continue;
    best = each;
    least = served;
  }
  return best;
}

/// Whether a host has begun that may serve this one, and has not said so yet.
bool Schedule::expects_parents(std::size_t host, std::size_t parcel, Time now) const {
  return std::ranges::any_of(takers_.at(parcel), [&](std::size_t each) {
    const Part& part = parts_.at(parcel)[each];
    const Member& member = members_[each];
    const bool may_come = member.serving == Serving::unknown || part.depth >= kDeep;
    return part.is_receiving && may_come && member.failed < kFailed && may_serve(each, host) &&
           now - part.since < kSilence;
  });
}

Schedule::Part& Schedule::part_of(std::size_t host, std::size_t parcel) {
  std::vector<Part>& parts = parts_[parcel];
  if (parts.size() <= host) parts.resize(host + 1);
  return parts[host];
}

Schedule::Member& Schedule::member_of(std::size_t host) {
  if (members_.size() <= host) members_.resize(host + 1);
  return members_[host];
}

Schedule::Source Schedule::source_for(std::size_t host, std::size_t parcel, Time now, Sum sum) {
  Member& member = member_of(host);
  if (!std::exchange(member.has_asked, true)) ++asking_;
  Part& part = part_of(host, parcel);
  takers_.try_emplace(parcel);
  if (!std::exchange(part.has_asked, true)) part.since = now;
  const bool is_head = heads_ < std::min(kHeads, (asking_ + 1) / 2);
  if (is_head || member.misses >= kMisses || member.complaints >= kComplaints ||
      part.tries >= kTries || is_hopeless())
    return begin(host, parcel, now, std::nullopt);
  auto parent = find_free(host, parcel, now);
  const bool is_free = parent.has_value();
  if (!is_free) parent = find_any(host, parcel, now);
  if (!parent && !expects_parents(host, parcel, now)) return begin(host, parcel, now, std::nullopt);
  const bool begins = parent && sum == Sum::known && (is_free || now - part.since >= kCrowded);
  return begins ? begin(host, parcel, now, parent) : Source{};
}

void Schedule::set_serving(std::size_t host, Serving serving) {
  member_of(host).serving = serving;
}

/// Only bytes that were there for it sooner say how slow it is. Few bytes say nothing: the first
/// ones come from what lies on the way.
void Schedule::note_rate(std::size_t host, std::size_t parcel, Time now) {
  constexpr std::uint64_t kLeast = 100'000;
  const auto seconds_to = [](Time from, Time to) {
    return std::max(std::chrono::duration<double>(to - from).count(), 0.001);
  };
  const Part& part = part_of(host, parcel);
  if (part.bytes < kLeast) return;
  const double rate = static_cast<double>(part.bytes) / seconds_to(part.since, now);
  double offered = launchers_ = std::max(launchers_, part.sender ? 0 : rate);
  if (part.sender) {
    const Part& from = parts_.at(parcel)[*part.sender];
    const Time all_at = from.has_all ? from.all_at : now;
    offered = static_cast<double>(part.bytes) / seconds_to(part.since, all_at);
  }
  Member& member = members_[host];
  member.rate = std::max(member.rate, rate);
  double fastest = 0;
  fast_ = 0;  // the second one: one host could say what it likes
  for (const Member& each : members_) {
    fast_ = std::max(fast_, std::min(fastest, each.rate));
    fastest = std::max(fastest, each.rate);
  }
  const bool is_behind_slow = part.sender && is_slow(*part.sender);
  if (rate < offered / 2 && !is_behind_slow) member.is_limited = true;
}

void Schedule::got_more(std::size_t host, std::size_t parcel, std::uint64_t bytes, Time now) {
  Part& part = part_of(host, parcel);
  part.heard = now;
  part.bytes = std::max(part.bytes, bytes);
}

void Schedule::got_all(std::size_t host, std::size_t parcel, Time now) {
  Part& part = part_of(host, parcel);
  if (std::exchange(part.has_all, true)) return;
  part.all_at = now;
  if (part.sender) {  // the bytes that the launcher has sent may still be on their way
    note_rate(host, parcel, now);
    Member& member = members_[host];
    member.misses = 0;
    member.was_served = was_passed_on_ = true;
  }
  let_go(host, part);
}

void Schedule::keep(std::size_t host, std::size_t parcel) {
  std::deque<std::size_t>& kept = members_[host].kept;
  kept.push_back(parcel);
  if (kept.size() <= kKept) return;
  std::erase(takers_[kept.front()], host);
  kept.pop_front();
}

/// One that was forgotten, and is made anew, may have no takers yet.
bool Schedule::is_awaited(std::size_t parcel) const {
  const auto found = parts_.find(parcel);
  return found != parts_.end() && std::ranges::any_of(found->second, [](const Part& each) {
           return each.has_asked && !each.is_receiving && !each.has_all;
         });
}

bool Schedule::is_expected_by_any(std::size_t parent) const {
  return std::ranges::any_of(parts_, [&](const auto& parts) {
    return std::ranges::any_of(parts.second, [&](const Part& each) {
      return each.is_receiving && each.parent == parent && each.bytes == 0;
    });
  });
}

void Schedule::forget(std::size_t parcel) {
  parts_.erase(parcel);
  takers_.erase(parcel);
  for (Member& member : members_) std::erase(member.kept, parcel);
}

/// One host behind a firewall misses, and is missed by, any number of others. If hosts do not reach
/// each other at all, there are soon two misses without a host in common.
void Schedule::note_miss(std::size_t host, std::size_t parent) {
  constexpr std::size_t kMost = 64;
  const auto is_apart = [&](const auto& each) {
    return each.first != host && each.first != parent && each.second != host &&
           each.second != parent;
  };
  are_apart_ = are_apart_ || std::ranges::any_of(misses_, is_apart);
  if (misses_.size() < kMost) misses_.emplace_back(host, parent);
}

void Schedule::ended(std::size_t host, std::size_t parcel, End end, Time now) {
  Part& part = part_of(host, parcel);
  Member& member = members_[host];
  part.is_receiving = false;
  let_go(host, part);
  if (end == End::serves_on) {
    // Whoever has said nothing by now is not waited for with each further parcel.
    if (member.serving == Serving::unknown) member.serving = Serving::no;
    if (!part.sender) note_rate(host, parcel, now);
    if (!std::exchange(part.has_all, true)) part.all_at = now;
    // It has shown that hosts reach it: the next parcel may come from one again.
    if (!part.sender && member.was_served && member.misses > 0) --member.misses;
    keep(host, parcel);
    return;
  }
  std::erase(takers_[parcel], host);
  if (end == End::over) {
    part.has_asked = false;
    return;
  }
  part.since = part.heard;
  part.missed_at = begun_;
  if (!part.sender) return;
  // It passed on what it was given: those that took it from it may have said so first.
  member.failed -= std::exchange(part.blamed, 0);
  Part& from = parts_.at(parcel)[*part.sender];
  const bool is_in_want = !from.has_all && now - from.heard >= kNews;
  if (from.missed_at >= part.begun || (end == End::missed && is_in_want)) return;
  Member& parent = members_[*part.sender];
  note_miss(host, *part.sender);
  const int blame = end == End::spoilt ? kFailed : 1;
  parent.failed += blame;
  from.blamed += blame;
  ++member.misses;
  ++member.complaints;
  member.avoids.insert(*part.sender);
}

}  // namespace dtool::tree_sync
