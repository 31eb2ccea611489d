// SPDX-License-Identifier: MIT
#include "sync/copy/copying.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ssh/machine/encodings.h"
#include "ssh/remote.h"
#include "sync/copy/parcel_run.h"

namespace dtool::tree_sync {
namespace {

/// The first round sends; the others send again what arrived spoilt or was changed there meanwhile.
constexpr std::int64_t kRounds = 3;

std::size_t count_in(const std::vector<host::EntryRun>& runs) {
  std::uint64_t count = 0;
  for (const host::EntryRun& run : runs) count += run.count;
  return static_cast<std::size_t>(count);
}

/// Whether the runs are in order, apart from each other, and of a listing of that size.
bool are_of(const std::vector<host::EntryRun>& runs, std::size_t size) {
  std::uint64_t end = 0;
  for (const host::EntryRun& run : runs) {
    if (run.first < end || run.first >= size || run.count > size - run.first) return false;
    end = run.first + run.count;
  }
  return true;
}

/// Calls `action` with each place in the runs.
template <typename Action>
void for_each_place(const std::vector<host::EntryRun>& runs, Action action) {
  for (const host::EntryRun& run : runs) {
    for (std::uint64_t place = run.first; place < run.first + run.count; ++place)
      action(static_cast<std::size_t>(place));
  }
}

bool is_file(const host::CopyEntry& entry) {
  return !entry.name.ends_with('/') && entry.target.empty();
}

/// In the order of the listing, each once.
Lacking lacking_of(std::size_t host, const host::CopyReply& reply) {
  std::map<std::size_t, std::uint64_t> entries;
  for_each_place(reply.lacks, [&](std::size_t place) { entries.emplace(place, 0); });
  for (const host::CopyPart& part : reply.parts) {
    const auto found = entries.find(static_cast<std::size_t>(part.entry));
    if (found != entries.end()) found->second = part.bytes;
  }
  return {host, {entries.begin(), entries.end()}};
}

}  // namespace

Copying::Copying(ssh::Remote& remote, CopyList& list, std::string folder, std::string launcher,
                 ssh::Events& events, Foreign foreign)
    : remote_(remote),
      list_(list),
      folder_(std::move(folder)),
      name_(ssh::random_hex(8)),
      launcher_(std::move(launcher)),
      events_(events),
      foreign_(foreign),
      hosts_(remote.hosts().size()) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].result.host = remote.hosts()[i];
    hosts_[i].result.exit_code = 0;
  }
}

host::CopyPlace Copying::place_on(std::size_t host) const {
  const auto owner = takes_over_.find(host);
  return {folder_,
          name_,
          round_,
          static_cast<std::int64_t>(host),
          launcher_,
          owner == takes_over_.end() ? "" : owner->second,
          foreign_ == Foreign::refuse};
}

/// The hosts that have not failed, and are wanted.
std::vector<std::size_t> Copying::well(bool (*is_wanted)(const CopyHost&)) const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (hosts_[i].result.ok() && is_wanted(hosts_[i])) places.push_back(i);
  return places;
}

void Copying::ask_with(const std::vector<std::size_t>& hosts, Settles settles,
                       Compression compression) {
  const auto listing = pack_list(list_, compression);
  std::vector<ssh::Task> tasks;
  for (const std::size_t host : hosts) {
    host::CopyRequest request{place_on(host), settles == Settles::yes,
                              compression == Compression::zstd};
    ssh::Command command = ssh::ask_host(request);
    command.input_from = listing;
    tasks.push_back({host, std::move(command)});
  }
  ssh::RunOptions options;
  options.on_interrupt = ssh::OnInterrupt::leave;
  if (settles == Settles::no) options.follows = ssh::Follows::more;
  ssh::Events nobody;
  auto results = remote_.run(std::move(tasks), nobody, options);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CopyHost& host = hosts_[hosts[i]];
    host.result = std::move(results[i]);
    auto reply = ssh::reply_in<host::CopyReply>(host.result);
    host.result.out.clear();
    if (!reply) continue;
    if (!are_of(reply->lacks, list_.entries.size()) ||
        !are_of(reply->unsure, list_.entries.size())) {
      host.result.fail("its answer is about other files");
      continue;
    }
    host.reply = *std::move(reply);
  }
}

/// A host of another processor may read nothing that is compressed; it is asked twice.
void Copying::ask(const std::vector<std::size_t>& hosts, Settles settles) {
  if (hosts.empty()) return;
  ask_with(hosts, settles, Compression::zstd);
  std::vector<std::size_t> again;
  for (const std::size_t host : hosts)
    if (hosts_[host].result.ok() && !hosts_[host].reply.reads_zstd) again.push_back(host);
  if (!again.empty()) ask_with(again, settles, Compression::none);
}

/// Files that have another time there, and the same size, are compared by their SHA-256.
void Copying::hash_unsure() {
  std::set<std::size_t> unsure;
  for (const CopyHost& host : hosts_)
    if (host.result.ok())
      for_each_place(host.reply.unsure, [&](std::size_t place) {
        if (is_file(list_.entries[place]) && list_.entries[place].sha256.empty())
          unsure.insert(place);
      });
  for (const std::size_t place : unsure) list_.entries[place].sha256 = sum_of_file(list_, place);
}

void Copying::ask() {
  ask(well([](const CopyHost&) { return true; }), Settles::no);
  hash_unsure();
  ask(well([](const CopyHost& host) { return !host.reply.unsure.empty(); }), Settles::no);
  std::uint64_t most = 0;
  for (CopyHost& host : hosts_) {
    if (!host.result.ok()) continue;
    host.entries = count_in(host.reply.lacks);
    for (const auto& [entry, bytes] : lacking_of(0, host.reply).entries)
      host.lacked += list_.entries[entry].size - std::min(bytes, list_.entries[entry].size);
    most = std::max(most, host.lacked);
  }
  sizes_ = parcel_sizes(hosts_.size(), most);
  // Parcels lie there whole until their files are taken from them, and while they are passed on.
  constexpr std::uint64_t kAside = 4;
  for (CopyHost& host : hosts_) {
    const bool is_relayed = hosts_.size() >= kRelay;
    host.room = host.reply.needed + (is_relayed ? std::min(kAside * sizes_.most, host.lacked) : 0);
  }
}

/// Asks those that were sent something, or have something to settle; those that saw it come to
/// another host last.
void Copying::prove() {
  for (const auto& [entry, sum] : sums_.take_finished()) list_.entries[entry].sha256 = sum;
  std::vector<std::size_t> own = well(
      [](const CopyHost& host) { return !host.reply.lacks.empty() || host.reply.is_unsettled; });
  std::erase_if(own, [this](std::size_t host) { return std::ranges::count(followers_, host) > 0; });
  ask(own, Settles::yes);
  std::erase_if(followers_, [this](std::size_t host) { return !hosts_[host].result.ok(); });
  ask(followers_, Settles::no);
  followers_.clear();
  for (CopyHost& host : hosts_) {
    if (!host.result.ok() || host.reply.blocked.empty()) continue;
    host.result.fail(fmt::format("{}", fmt::join(host.reply.blocked, "; ")),
                     "it was put or changed there while this copy was at work; move it away");
  }
}

/// Returns whether anything was lacking.
bool Copying::send_round() {
  std::vector<Lacking> lacking;
  std::vector<ParcelHost> takers;
  Compression compression = Compression::zstd;
  for (const std::size_t i : well([](const CopyHost& host) { return !host.reply.lacks.empty(); })) {
    lacking.push_back(lacking_of(i, hosts_[i].reply));
    takers.push_back({i, place_on(i), hosts_[i].result});
    if (!hosts_[i].reply.reads_zstd) compression = Compression::none;
  }
  if (takers.empty()) return false;
  const std::vector<Parcel> parcels = cut_parcels(list_, lacking, sizes_);
  ParcelRun run(list_, parcels, sums_, takers, compression, events_);
  run.run(remote_);
  for (ParcelHost& taker : takers) {
    CopyHost& host = hosts_[taker.host];
    host.result = std::move(taker.result);
    host.sent += taker.bytes;
    for (std::string& name : taker.spoilt) spoilt_.emplace_back(taker.host, std::move(name));
    host.same_as = taker.holder;
    if (taker.holder) followers_.push_back(taker.host);
  }
  const auto missed = run.missed();
  missed_.insert(missed_.end(), missed.begin(), missed.end());
  return true;
}

void Copying::send() {
  for (round_ = 1; round_ <= kRounds && !remote_.interrupted(); ++round_) {
    const bool was_lacking = send_round();
    if (remote_.interrupted()) return;
    prove();
    if (!was_lacking) break;
  }
  for (CopyHost& host : hosts_) {
    if (host.result.failure == ssh::Failure::connection_lost && host.result.hint.empty())
      host.result.hint = "what has come stays; the same command goes on from there";
    if (!host.result.ok() || remote_.interrupted()) continue;
    const std::size_t lacking = count_in(host.reply.lacks) + count_in(host.reply.unsure);
    if (lacking == 0) continue;
    host.result.fail(fmt::format("{} of {} in {} are not as they were sent", lacking,
                                 list_.entries.size(), host.reply.folder),
                     "does something else write there? the same command sends what is lacking");
  }
}

}  // namespace dtool::tree_sync
