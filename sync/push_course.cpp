// SPDX-License-Identifier: MIT
#include "sync/push_course.h"

#include <utility>

#include "sync/push_steps.h"

namespace dtool::tree_sync {

PushCourse::PushCourse(const std::vector<ssh::Host>& hosts, const Tree& tree,
                       const Listing& listing, Relay relay, std::size_t destinations)
    : hosts_(hosts),
      tree_(tree),
      packages_(tree, listing),
      relay_(relay),
      destinations_(destinations) {}

std::vector<Missed> PushCourse::missed() const {
  std::vector<Missed> all = missed_;
  for (const auto& [package, relaying] : relayings_)
    all.insert(all.end(), relaying.missed().begin(), relaying.missed().end());
  return all;
}

/// Another run of the tasks packs anew, and no key is used for two packages.
void PushCourse::forget_packages() {
  missed_ = missed();
  relayings_.clear();
  schedule_ = {};
  servers_.clear();
  packages_.clear();
}

Compression compression_for(const PushSlot& slot) {
  return slot.reply.reads_zstd ? Compression::zstd : Compression::none;
}

/// If files were touched there, or their origin is unknown, size and time prove nothing.
Same PushCourse::same_for(const PushSlot& slot) const {
  const host::TreeReply& there = slot.reply;
  const bool is_proven =
      there.is_empty || (!there.basis.empty() && !packages_.hides_edits(there.basis));
  return is_proven ? Same::size_and_time : Same::content;
}

/// The package that the host lacks, shared with all hosts that lack the same.
const Package* PushCourse::package_for(const PushSlot& slot) {
  const host::TreeReply& there = slot.reply;
  const bool fits = !there.basis.empty() || there.is_empty;
  // For folders on this machine rsync copies as fast, and no other host shares the package.
  if (!fits || hosts_.at(slot.destination.host).is_local) return nullptr;
  const Package* package = packages_.get(there.basis, compression_for(slot), Seal::no);
  const bool is_passed_on = package != nullptr && passes_on(*package);
  return is_passed_on ? packages_.get(there.basis, compression_for(slot), Seal::yes) : package;
}

bool PushCourse::passes_on(const Package& package) const {
  if (relay_ == Relay::yes) return destinations_ > 1;
  // Hosts open ports for it, so not for a little.
  constexpr std::uint64_t kLeast = 16'000'000;  // bytes for all hosts together
  return relay_ == Relay::where_it_pays && destinations_ >= kRelay &&
         package.expected * destinations_ >= kLeast;
}

/// Hosts that have it from hosts are sent nothing that may be in vain.
const Package* PushCourse::guess() {
  const Package* guess = packages_.guess();
  return guess != nullptr && passes_on(*guess) ? nullptr : guess;
}

Relaying* PushCourse::relaying_of(const PushSlot& slot) {
  const auto found = relayings_.find(slot.package);
  return found == relayings_.end() ? nullptr : &found->second;
}

/// Unpacking, or waiting until it is clear from where the package comes.
PushStep PushCourse::take_part(PushSlot& slot) {
  if (slot.package->key.empty()) return PushStep::unpack;
  const auto& sum = *slot.package->sum;
  const std::uint64_t bytes = sum ? sum->bytes : slot.package->expected;
  const bool is_little = bytes * destinations_ <= kLeastRelayed;
  if (is_little && relaying_of(slot) == nullptr) {  // else hosts may be waiting for each other
    slot.part = {{slot.package->key}, {}, {}};
    return PushStep::unpack;
  }
  const std::size_t parcel = relayings_.size();
  Relaying& relaying =
      relayings_.try_emplace(slot.package, *slot.package, schedule_, servers_, parcel)
          .first->second;
  const auto part = relaying.part_for(slot.destination.host);
  if (!part) return PushStep::await;
  slot.part = *part;
  return PushStep::unpack;
}

PushStep PushCourse::after_ask(PushSlot& slot) {
  const bool has_guess = slot.package != nullptr;
  if (has_guess && slot.result.failure == ssh::Failure::local_program) {  // it could not be made
    slot.package = nullptr;
    return PushStep::ask;
  }
  const auto reply = read_tree_reply(slot.result);
  if (!reply) return PushStep::done;
  slot.reply = *reply;
  if (reply->is_same_folder && !slot.root && !hosts_.at(slot.destination.host).is_local) {
    if ((slot.root = root_.marked())) return PushStep::ask;
    set_unproven(slot.result, slot.destination.folder);
    return PushStep::done;
  }
  slot.pushed.is_the_tree = reply->is_same_folder;
  slot.shares = reply->holder.has_value();
  if (slot.pushed.is_the_tree) return slot.destination.own ? PushStep::freeze : PushStep::done;
  if (slot.shares || reply->is_whole) return PushStep::done;
  if (!std::exchange(is_kept_, true)) packages_.keep_basis();
  // A host may say so, too, that was sent none.
  if (reply->unpacked && has_guess) return after_package(slot, *reply->unpacked);
  slot.package = package_for(slot);
  return slot.package == nullptr ? PushStep::prepare : take_part(slot);
}

PushStep PushCourse::after_unpack(PushSlot& slot) {
  // The package could not be made here; whether rsync can read the tree it tells itself.
  const bool is_made = slot.result.failure != ssh::Failure::local_program;
  const auto reply = is_made ? read_tree_reply(slot.result) : host::TreeReply{};
  const host::Unpacked unpacked = reply && reply->unpacked ? *reply->unpacked : host::Unpacked{};
  if (Relaying* relaying = relaying_of(slot)) {
    const bool serves_on = unpacked.is_whole || !unpacked.missed.empty();
    const auto next =
        relaying->ended(slot.destination.host, unpacked,
                        serves_on ? Relaying::Then::serves_on : Relaying::Then::serves_nobody);
    if (next == Relaying::Next::asks_again) return take_part(slot);
  }
  // Another launcher may have sent the same meanwhile.
  const PushStep step = !reply || reply->is_whole ? PushStep::done : after_package(slot, unpacked);
  return step == PushStep::done ? while_serving(slot) : step;
}

PushStep PushCourse::while_serving(PushSlot& slot) {
  Relaying* relaying = slot.has_unpacked ? relaying_of(slot) : nullptr;
  if (relaying == nullptr) return PushStep::done;
  if (relaying->is_needed(slot.destination.host)) return PushStep::serve;
  relaying->leaves(slot.destination.host);
  return PushStep::done;
}

PushStep PushCourse::after_package(PushSlot& slot, const host::Unpacked& unpacked) {
  if (unpacked.foreign > 0) {
    set_foreign(slot.result, unpacked.folder, static_cast<std::size_t>(unpacked.foreign),
                unpacked.first);
    return PushStep::done;
  }
  if (!unpacked.is_whole) {
    if (!slot.package->key.empty()) missed_.push_back({slot.destination.host, unpacked.broken});
    return PushStep::prepare;
  }
  slot.has_unpacked = true;
  slot.pushed = {{slot.package->files, slot.package->bytes},
                 static_cast<std::size_t>(unpacked.removed),
                 false};
  return PushStep::done;
}

/// Where all files that are not as dtool sent them are as the tree's, they may become dtool's.
PushStep PushCourse::after_compare(PushSlot& slot) {
  explain(slot.result);
  if (!slot.result.ok()) return PushStep::done;
  slot.has_compared = true;
  return slot.differences.count() == 0 ? PushStep::prepare : PushStep::refuse;
}

PushStep PushCourse::next(PushSlot& slot) {
  switch (slot.step) {
    case PushStep::ask:
      return after_ask(slot);
    case PushStep::await:
      if (slot.result.failure == ssh::Failure::none) return take_part(slot);
      if (Relaying* relaying = relaying_of(slot)) relaying->leaves(slot.destination.host);
      return PushStep::done;
    case PushStep::unpack:
      return after_unpack(slot);
    case PushStep::serve:
      return while_serving(slot);
    case PushStep::prepare:
      slot.prepared = reply_in<host::PrepareReply>(slot.result).value_or(host::PrepareReply{});
      if (slot.has_compared) return slot.prepared.lock.empty() ? PushStep::done : PushStep::send;
      slot.differences.add(slot.prepared.first_lost, slot.prepared.lost);
      if (!slot.prepared.foreign.empty()) return PushStep::compare;
      if (slot.differences.count() > 0) return PushStep::refuse;
      return slot.prepared.lock.empty() ? PushStep::done : PushStep::send;
    case PushStep::compare:
      return after_compare(slot);
    case PushStep::refuse:
      if (slot.result.failure == ssh::Failure::none)
        set_foreign(slot.result, slot.destination.folder, slot.differences.count(),
                    slot.differences.first());
      return PushStep::done;
    case PushStep::send:
      explain(slot.result);
      slot.pushed.sent = read_sent(slot.out_tail);
      return slot.result.ok() ? PushStep::prune : PushStep::done;
    case PushStep::freeze:
      reply_in<host::FreezeReply>(slot.result);
      return PushStep::done;
    case PushStep::prune:
    case PushStep::done:
      break;
  }
  if (const auto pruned = reply_in<host::PruneReply>(slot.result)) {
    slot.pushed.removed = static_cast<std::size_t>(pruned->removed);
    refuse_changed(slot.result, tree_);
  }
  return PushStep::done;
}

}  // namespace dtool::tree_sync
