// SPDX-License-Identifier: MIT
// One package on its way from host to host: who gets it from whom, with which secrets, and what the
// hosts report meanwhile. Whoever sends packages asks it before, and reports the results to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"
#include "sync/package_writer.h"
#include "sync/schedule.h"

namespace dtool::tree_sync {

/// Whether hosts pass on to each other what all of them lack, so that this machine sends it once
/// and not once per host: never, if it saves more than it costs, or always.
enum class Relay { no, where_it_pays, yes };

/// A host that was to get the package from another host and did not.
struct Missed {
  std::size_t host = 0;
  std::string reason;
};

/// From this many hosts on they pass on to each other what all of them lack.
inline constexpr std::size_t kRelay = 3;
/// Less than that for all hosts together is sent from here: passing on takes tenths of a second.
inline constexpr std::uint64_t kLeastRelayed = 4'000'000;

/// Where a host serves packages to others.
struct PackageServer {
  std::string secret;  ///< the secret that others prove to know
  std::string address;
  std::uint16_t port = 0;
};
using PackageServers = std::map<std::size_t, PackageServer>;  ///< the key is the host

class Relaying {
 public:
  /// `package` is sealed, and stands in `schedule` as that parcel. All three must outlive this. A
  /// host that has all of it serves others for that long at most.
  Relaying(const Package& package, Schedule& schedule, PackageServers& servers, std::size_t parcel,
           std::chrono::seconds serves = std::chrono::minutes(10))
      : package_(package),
        schedule_(schedule),
        servers_(servers),
        parcel_(parcel),
        serves_(serves) {}

  /// What the host is to do now. Nothing: it must wait for another host, and ask again soon.
  std::optional<host::RelayPart> part_for(std::size_t host);

  /// The launcher has sent the host that many bytes.
  void sent(std::size_t host, std::uint64_t bytes);
  /// Takes what the host reported while unpacking. Returns how much it has received from another
  /// host, if it reported that.
  std::optional<ssh::Transferred> heard(std::size_t host, std::string_view output);

  enum class Next { is_over, asks_again };
  enum class Then { serves_nobody, serves_on };
  /// The host has the package, or has failed, or says why another host did not send it: `missed`,
  /// and whether that one sent wrong bytes. Then::serves_on: its server goes on.
  Next ended(std::size_t host, const std::string& missed = {}, bool is_spoilt = false,
             Then then = Then::serves_nobody);

  const std::vector<Missed>& missed() const { return missed_; }

 private:
  struct Member {
    bool has_parent = false;
    std::uint64_t bytes = 0;
    host::FrameReader said = {};
    bool is_heard = true;  ///< false: it sent something that is not a message
  };
  void has(std::size_t host, std::uint64_t bytes);
  void take_address(std::size_t host, const host::TreeNews& news);

  const Package& package_;
  Schedule& schedule_;
  PackageServers& servers_;
  std::size_t parcel_;
  std::chrono::seconds serves_;
  std::map<std::size_t, Member> members_;
  std::vector<Missed> missed_;
  bool is_sum_seen_ = false;
};

}  // namespace dtool::tree_sync
