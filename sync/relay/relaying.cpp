// SPDX-License-Identifier: MIT
#include "sync/relay/relaying.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "ssh/host/messages/tree.h"
#include "ssh/host_request.h"
#include "ssh/machine/random_hex.h"

namespace dtool::tree_sync {
namespace {

/// If all hosts together need no more than this, a tree of hosts is not worth it: each host takes a
/// moment to begin.
constexpr std::uint64_t kLittle = 4'000'000;

}  // namespace

std::optional<host::RelayPart> Relaying::part_for(std::size_t host) {
  constexpr std::size_t kSecret = 16;  // bytes
  const auto& sum = *package_.sum;
  if (sum && sum->bytes * hosts_ <= kLittle) return host::RelayPart{{package_.key}, {}, {}};
  if (sum && !std::exchange(is_sum_seen_, true)) {
    for (const auto& [other, member] : members_)
      if (member.bytes >= sum->bytes) tree_.got_all(other);
  }
  const auto source = tree_.source_for(host, std::chrono::steady_clock::now(),
                                       sum ? RelayTree::Sum::known : RelayTree::Sum::unknown);
  if (source.from == RelayTree::From::nobody_yet) return std::nullopt;
  Member& member = members_[host] = Member{};
  member.secret = ssh::random_hex(kSecret);
  host::RelayPart part{{package_.key}, {member.secret}, {}, serves_.count()};
  if (source.from == RelayTree::From::host) {
    member.has_parent = true;
    const Member& parent = members_.at(source.host);
    part.parent = host::RelayPart::Parent{
        parent.address, parent.port, {parent.secret}, sum->bytes, sum->sha256};
  }
  return part;
}

void Relaying::has(std::size_t host, std::uint64_t bytes) {
  Member& member = members_.at(host);
  if (bytes <= member.bytes) return;
  member.bytes = bytes;
  tree_.got_more(host, std::chrono::steady_clock::now());
  const auto& sum = *package_.sum;
  if (sum && bytes >= sum->bytes) tree_.got_all(host);
}

void Relaying::sent(std::size_t host, std::uint64_t bytes) {
  if (members_.contains(host)) has(host, bytes);
}

/// It can say what it likes.
void Relaying::take_address(std::size_t host, const host::TreeNews& news) {
  if (!ssh::is_address(news.address) || news.port == 0) return tree_.serves_nobody(host);
  Member& member = members_.at(host);
  member.address = news.address;
  member.port = news.port;
  tree_.serves(host);
}

std::optional<ssh::Transferred> Relaying::heard(std::size_t host, std::string_view output) {
  const auto found = members_.find(host);
  if (found == members_.end() || !found->second.is_heard) return std::nullopt;
  std::optional<std::uint64_t> most;
  try {
    found->second.said.add(output);
    while (const auto frame = found->second.said.next()) {
      const bool is_reply =
          frame->kind == host::Kind::tree_reply || frame->kind == host::Kind::parcel_reply;
      if (is_reply) tree_.serves_nobody(host);  // it is about to end
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
  return ssh::Transferred{*most, sum ? std::optional(sum->bytes) : std::nullopt};
}

Relaying::Next Relaying::ended(std::size_t host, const host::Unpacked& unpacked) {
  if (!members_.contains(host)) return Next::is_over;
  const auto now = std::chrono::steady_clock::now();
  // A host cannot miss a package from the launcher.
  if (unpacked.missed.empty() || !members_.at(host).has_parent) {
    tree_.ended(host, RelayTree::End::over, now);
    return Next::is_over;
  }
  missed_.push_back({host, unpacked.missed});
  tree_.ended(host, unpacked.is_spoilt ? RelayTree::End::spoilt : RelayTree::End::missed, now);
  return Next::asks_again;
}

}  // namespace dtool::tree_sync
