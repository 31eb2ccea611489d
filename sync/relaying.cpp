// SPDX-License-Identifier: MIT
#include "sync/relaying.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "ssh/machine/encodings.h"
#include "ssh/remote.h"
#include "ssh/wire/tree.h"

namespace dtool::tree_sync {
std::optional<host::RelayPart> Relaying::part_for(std::size_t host) {
  constexpr std::size_t kSecret = 16;  // bytes
  const auto& sum = *package_.sum;
  const auto now = std::chrono::steady_clock::now();
  if (sum && !std::exchange(is_sum_seen_, true)) {
    for (const auto& [other, member] : members_)
      if (member.bytes >= sum->bytes) schedule_.got_all(other, parcel_, now);
  }
  const auto source =
      schedule_.source_for(host, parcel_, now, sum ? Schedule::Sum::known : Schedule::Sum::unknown);
  if (source.from == Schedule::From::nobody_yet) return std::nullopt;
  Member& member = members_[host] = Member{};
  PackageServer& server = servers_[host];
  if (server.secret.empty()) server.secret = ssh::random_hex(kSecret);
  host::RelayPart part{
      {package_.key}, {server.secret}, {}, serves_.count(), static_cast<std::int64_t>(parcel_)};
  if (source.from == Schedule::From::host) {
    member.has_parent = true;
    const PackageServer& parent = servers_.at(source.host);
    part.parent = host::RelayPart::Parent{
        parent.address, parent.port, {parent.secret}, sum->bytes, sum->sha256};
  }
  return part;
}

void Relaying::has(std::size_t host, std::uint64_t bytes) {
  Member& member = members_.at(host);
  if (bytes <= member.bytes) return;
  member.bytes = bytes;
  const auto now = std::chrono::steady_clock::now();
  schedule_.got_more(host, parcel_, bytes, now);
  const auto& sum = *package_.sum;
  if (sum && bytes >= sum->bytes) schedule_.got_all(host, parcel_, now);
}

void Relaying::sent(std::size_t host, std::uint64_t bytes) {
  if (members_.contains(host)) has(host, bytes);
}

/// It can say what it likes.
void Relaying::take_address(std::size_t host, const host::TreeNews& news) {
  if (!ssh::is_address(news.address) || news.port == 0)
    return schedule_.set_serving(host, Schedule::Serving::no);
  PackageServer& server = servers_.at(host);
  server.address = news.address;
  server.port = news.port;
  schedule_.set_serving(host, Schedule::Serving::yes);
}

std::optional<ssh::Transferred> Relaying::heard(std::size_t host, std::string_view output) {
  const auto found = members_.find(host);
  if (found == members_.end() || !found->second.is_heard) return std::nullopt;
  std::optional<std::uint64_t> most;
  try {
    found->second.said.add(output);
    while (const auto frame = found->second.said.next()) {
      if (frame->kind != host::Kind::tree_news) continue;
      const auto news = host::open<host::TreeNews>(*frame);
      if (news.listens) take_address(host, news);
      if (news.bytes > 0) most = std::max(most, std::optional(news.bytes));
    }
  } catch (const host::BadMessage&) {  // the reply will be found to be none
    found->second.is_heard = false;
  }
  if (!most) return std::nullopt;
  has(host, *most);
  const auto& sum = *package_.sum;
  return sum ? ssh::Transferred{std::min(*most, sum->bytes), sum->bytes} : ssh::Transferred{*most};
}

Relaying::Next Relaying::ended(std::size_t host, const std::string& missed, bool is_spoilt,
                               Then then) {
  if (!members_.contains(host)) return Next::is_over;
  const auto now = std::chrono::steady_clock::now();
  // A host cannot miss a package from the launcher.
  if (missed.empty() || !members_.at(host).has_parent) {
    const bool serves_on = then == Then::serves_on;
    schedule_.ended(host, parcel_, serves_on ? Schedule::End::serves_on : Schedule::End::over, now);
    return Next::is_over;
  }
  if (then == Then::serves_nobody) schedule_.set_serving(host, Schedule::Serving::unknown);
  missed_.push_back({host, missed});
  schedule_.ended(host, parcel_, is_spoilt ? Schedule::End::spoilt : Schedule::End::missed, now);
  return Next::asks_again;
}

}  // namespace dtool::tree_sync
