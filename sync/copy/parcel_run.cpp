// SPDX-License-Identifier: MIT
#include "sync/copy/parcel_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "ssh/remote.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"

namespace dtool::tree_sync {
namespace {

/// How soon a host that has to wait for others asks again.
constexpr std::chrono::milliseconds kAskAgain{20};
/// A host that has all of its parcels still serves those that began to take one for so long.
constexpr std::chrono::seconds kServes{20};
/// A file whose beginning is there already is read here to its end before its checksum can follow.
constexpr std::uint64_t kSlowestRead = 10'000'000;  // bytes a second
/// A host whose program stands still while its server answers would be waited for without an end.
constexpr std::uint64_t kSlowestHost = 8'000;  // bytes a second

/// How many hosts pass a parcel on to each other, at least.
std::size_t least_for(Relay relay) {
  if (relay == Relay::no) return std::numeric_limits<std::size_t>::max();
  return relay == Relay::yes ? 2 : kRelay;
}

}  // namespace

std::chrono::milliseconds patience_for(const CopyList& list, const Parcel& parcel) {
  std::uint64_t read_again = 0;
  for (const Range& range : parcel.ranges)
    if (range.offset > 0) read_again = std::max(read_again, list.entries[range.entry].size);
  return std::chrono::minutes(5) + std::chrono::seconds(read_again / kSlowestRead);
}

ParcelRun::ParcelRun(const CopyList& list, const std::vector<Parcel>& parcels, RunningSums& sums,
                     std::vector<ParcelHost>& hosts, Compression compression, ssh::Events& events,
                     Relay relay, std::size_t most_kept)
    : list_(list),
      parcels_(parcels),
      sums_(sums),
      compression_(compression),
      events_(events),
      relay_(relay),
      most_kept_(most_kept) {
  for (ParcelHost& each : hosts) slots_[each.host].host = &each;
  for (std::size_t i = 0; i < parcels_.size(); ++i) {
    const std::size_t wanted_by = parcels_[i].hosts.size();
    wanted_by_.push_back(wanted_by);
    if (wanted_by >= least_for(relay_)) relayed_ += parcels_[i].bytes * wanted_by;
    for (const std::size_t host : parcels_[i].hosts) {
      slots_.at(host).parcels.push_back(i);
      slots_.at(host).all += parcels_[i].bytes;
    }
  }
}

void ParcelRun::run(ssh::Remote& remote) {
  std::vector<ssh::Task> tasks;
  for (const auto& [host, slot] : slots_) tasks.push_back(empty_task(slot, Last::no));
  ssh::RunOptions options;
  options.follows = ssh::Follows::more;
  options.on_interrupt = ssh::OnInterrupt::leave;  // the same command goes on from there
  const std::vector<ssh::HostResult> results = remote.run(std::move(tasks), *this, options);
  std::size_t i = 0;
  for (auto& [host, slot] : slots_) {
    ssh::HostResult& result = slot.host->result;
    // What next_task has made of a result says more.
    const bool is_ours = !slot.is_over || then_ == nullptr;
    if (is_ours && result.failure == ssh::Failure::none && results[i].failure != ssh::Failure::none)
      result = results[i];
    result.out.clear();
    ++i;
  }
}

/// An empty parcel. Before the first one hosts that share the folder find out about each other by
/// it; after the last one a host says that all is unpacked.
ssh::Task ParcelRun::empty_task(const Slot& slot, Last last) const {
  host::ParcelRequest request;
  request.place = slot.host->place;
  request.is_last = last == Last::yes;
  ssh::Command command = ssh::ask_host(request);
  command.input += host::to_frame(host::Kind::package_bytes, {});
  return {slot.host->host, std::move(command)};
}

ssh::Task ParcelRun::parcel_task(const Slot& slot) {
  const Package& package = packages_.at(slot.parcels[slot.at]);
  const Parcel& parcel = parcels_[slot.parcels[slot.at]];
  const auto patience = patience_for(list_, parcel);
  ssh::TaskOptions options{2 * patience + std::chrono::seconds(parcel.bytes / kSlowestHost)};
  options.follows = ssh::Follows::more;
  host::ParcelRequest request;
  request.place = slot.host->place;
  request.is_compressed = compression_ == Compression::zstd;
  request.patience_ms = patience.count();
  if (!package.key.empty()) request.relay = slot.part;
  ssh::Command command = ssh::ask_host(request);
  const bool is_from_host = request.relay && request.relay->parent;
  if (is_from_host) return {slot.host->host, std::move(command), options};
  command.input_from = package.content;
  const std::size_t next = slot.at + 1;
  if (next < slot.parcels.size() && packages_.size() < most_kept_) {
    pack(slot.parcels[next]);
    command.input_soon = packages_.at(slot.parcels[next]).content;
  }
  return {slot.host->host, std::move(command), options};
}

/// Says how the parcel is made; it is when the first host needs it.
void ParcelRun::pack(std::size_t place) {
  if (packages_.contains(place)) return;
  const Parcel& parcel = parcels_[place];
  const std::size_t hosts = wanted_by_[place];
  const bool is_relayed = hosts >= least_for(relay_) && relayed_ >= kLeastRelayed;
  packages_.emplace(
      place, pack_parcel(list_, parcel, sums_, compression_, is_relayed ? Seal::yes : Seal::no));
  if (is_relayed)
    relayings_.try_emplace(place, packages_.at(place), schedule_, servers_, place, kServes);
}

Relaying* ParcelRun::relaying_of(const Slot& slot) {
  if (slot.at >= slot.parcels.size()) return nullptr;
  const auto found = relayings_.find(slot.parcels[slot.at]);
  return found == relayings_.end() ? nullptr : &found->second;
}

/// The parcel that is due, or the question from where it comes.
std::optional<ssh::NextTask> ParcelRun::go_on(Slot& slot) {
  slot.is_sent = false;
  if (slot.at == slot.parcels.size()) {
    if (slot.parcels.empty()) return std::nullopt;
    // Who waits may have it from here.
    const std::size_t last = slot.parcels.back();
    const bool is_awaited = relayings_.contains(last) && schedule_.is_awaited(last);
    if (is_awaited || schedule_.is_expected_by_any(slot.host->host))
      return ssh::NextTask{std::nullopt, kAskAgain};
    slot.is_last = true;
    schedule_.set_serving(slot.host->host, Schedule::Serving::no);
    return ssh::NextTask{empty_task(slot, Last::yes)};
  }
  const std::size_t place = slot.parcels[slot.at];
  if (!packages_.contains(place)) {
    // The host that is behind all others never waits here.
    if (packages_.size() >= most_kept_ && !drop_one() && place > packages_.begin()->first)
      return ssh::NextTask{std::nullopt, kAskAgain};
    pack(place);
  }
  if (Relaying* relaying = relaying_of(slot)) {
    const auto part = relaying->part_for(slot.host->host);
    if (!part) return ssh::NextTask{std::nullopt, kAskAgain};
    slot.part = *part;
  }
  slot.is_sent = true;
  return ssh::NextTask{parcel_task(slot)};
}

void ParcelRun::release(std::size_t parcel) {
  if (--wanted_by_[parcel] == 0) drop(parcel);
}

/// So that a slow host does not hold back the others: a parcel is made again when a host comes to
/// it. The one that the fewest hosts want goes, and of these the one that a slow host needs last.
/// False: hosts are taking all of them.
bool ParcelRun::drop_one() {
  std::set<std::size_t> taken;
  for (const auto& [host, slot] : slots_)
    if (slot.is_sent && slot.at < slot.parcels.size()) taken.insert(slot.parcels[slot.at]);
  std::optional<std::size_t> least;
  for (const auto& [parcel, package] : packages_)
    if (!taken.contains(parcel) && (!least || wanted_by_[parcel] <= wanted_by_[*least]))
      least = parcel;
  if (least) drop(*least);
  return least.has_value();
}

void ParcelRun::drop(std::size_t parcel) {
  const auto relaying = relayings_.find(parcel);
  if (relaying != relayings_.end()) {
    const auto& missed = relaying->second.missed();
    constexpr std::size_t kLongest = 200;  // bytes of what a host says
    for (const Missed& each : missed)
      missed_.push_back({each.host, each.reason.substr(0, kLongest)});
    relayings_.erase(relaying);
    schedule_.forget(parcel);
  }
  packages_.erase(parcel);
}

/// Only what was sent can have arrived spoilt: with this parcel or the one before.
void ParcelRun::note_spoilt(Slot& slot, const std::vector<std::string>& names) const {
  std::set<std::string_view> said(names.begin(), names.end());
  for (std::size_t i = slot.at == 0 ? 0 : slot.at - 1; i <= slot.at && i < slot.parcels.size(); ++i)
    for (const Range& range : parcels_[slot.parcels[i]].ranges) {
      const std::string& name = list_.entries[range.entry].name;
      if (said.erase(name) > 0) slot.host->spoilt.push_back(name);
    }
}

std::optional<ssh::NextTask> ParcelRun::after_parcel(Slot& slot) {
  ssh::HostResult& result = slot.host->result;
  const auto reply = ssh::reply_in<host::ParcelReply>(result);
  if (reply && slot.has_begun) note_spoilt(slot, reply->spoilt);
  if (Relaying* relaying = relaying_of(slot); relaying != nullptr && slot.is_sent) {
    const auto next = reply ? relaying->ended(slot.host->host, reply->missed, reply->is_spoilt,
                                              Relaying::Then::serves_on)
                            : relaying->ended(slot.host->host);
    if (next == Relaying::Next::asks_again) return go_on(slot);
  }
  if (!reply) return std::nullopt;
  if (reply->holder) {
    slot.host->holder = static_cast<std::size_t>(*reply->holder);
    return std::nullopt;
  }
  if (slot.is_last) return std::nullopt;
  if (std::exchange(slot.has_begun, true)) {
    const std::size_t parcel = slot.parcels[slot.at++];
    slot.host->bytes += parcels_[parcel].bytes;
    release(parcel);
    tell_progress(slot, 0);
  }
  return go_on(slot);
}

/// The host takes nothing more, and serves nobody.
std::optional<ssh::NextTask> ParcelRun::end_part(Slot& slot) {
  schedule_.set_serving(slot.host->host, Schedule::Serving::no);
  for (; slot.at < slot.parcels.size(); ++slot.at) release(slot.parcels[slot.at]);
  slot.is_over = true;
  auto task = first_ ? first_(*slot.host) : std::nullopt;
  return task ? std::optional(ssh::NextTask{*std::move(task)}) : std::nullopt;
}

std::optional<ssh::NextTask> ParcelRun::next_task(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = slots_.at(host);
  if (slot.is_over) return then_->next_task(host, result);
  const bool waits = slot.has_begun && !slot.is_sent && !slot.is_last;
  const bool has_failed = waits && result.failure != ssh::Failure::none;
  if (!waits || has_failed) slot.host->result = result;
  if (has_failed && relaying_of(slot) != nullptr)
    schedule_.ended(host, slot.parcels[slot.at], Schedule::End::over,
                    std::chrono::steady_clock::now());  // it waits for none any more
  auto next = has_failed ? std::nullopt : waits ? go_on(slot) : after_parcel(slot);
  return next ? next : end_part(slot);
}

void ParcelRun::tell_progress(const Slot& slot, double fraction) {
  const std::uint64_t current =
      slot.at < slot.parcels.size() ? parcels_[slot.parcels[slot.at]].bytes : 0;
  const auto of_it = static_cast<std::uint64_t>(fraction * static_cast<double>(current));
  events_.on_progress(slot.host->host, {slot.host->bytes + of_it, slot.all});
}

void ParcelRun::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  const Slot& slot = slots_.at(host);
  if (slot.is_over && then_ != nullptr) return then_->on_output(host, stream, bytes);
  Relaying* relaying = slot.is_sent ? relaying_of(slot) : nullptr;
  if (relaying == nullptr || stream != ssh::Stream::out) return;
  if (const auto received = relaying->heard(host, bytes)) tell_progress(slot, received->fraction());
}

void ParcelRun::on_progress(std::size_t host, const ssh::Transferred& input) {
  const Slot& slot = slots_.at(host);
  if (!slot.is_sent || slot.is_over) return;
  tell_progress(slot, input.fraction());
  if (Relaying* relaying = relaying_of(slot)) relaying->sent(host, input.bytes);
}

void ParcelRun::on_result(std::size_t host, const ssh::HostResult& result) {
  const Slot& slot = slots_.at(host);
  if (then_ == nullptr) return events_.on_result(host, slot.host->result);
  if (slot.is_over) then_->on_result(host, result);
}

void ParcelRun::on_interrupt(const std::vector<std::size_t>& running) {
  events_.on_interrupt(running);
}

}  // namespace dtool::tree_sync
