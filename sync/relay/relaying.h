// SPDX-License-Identifier: MIT
// One package on its way from host to host: who gets it from whom, with which secrets, and what the
// hosts report meanwhile. push.cpp asks it before sending a package, and reports the results to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/frames.h"
#include "ssh/host/messages/tree.h"
#include "sync/package.h"
#include "sync/relay/relay_tree.h"

namespace dtool::tree_sync {

/// A host that was to get the package from another host and did not.
struct Missed {
  std::size_t host = 0;
  std::string reason;
};

class Relaying {
 public:
  /// `package` is sealed and must outlive this; at most `hosts` hosts of the push want it. A host
  /// that has all of it serves others for that long at most.
  Relaying(const Package& package, std::size_t hosts,
           std::chrono::seconds serves = std::chrono::minutes(10))
      : package_(package), hosts_(hosts), serves_(serves) {}

  /// What the host is to do now. Nothing: it must wait for another host, and ask again soon.
  std::optional<host::RelayPart> part_for(std::size_t host);

  /// The launcher has sent the host that many bytes.
  void sent(std::size_t host, std::uint64_t bytes);
  /// Takes what the host reported while unpacking. Returns how much it has received from another
  /// host, if it reported that.
  std::optional<ssh::Transferred> heard(std::size_t host, std::string_view output);

  enum class Next { is_over, asks_again };
  /// The host has finished unpacking, with that result.
  Next ended(std::size_t host, const host::Unpacked& unpacked);

  const std::vector<Missed>& missed() const { return missed_; }

 private:
  struct Member {
    std::string secret;
    std::string address;
    std::uint16_t port = 0;
    bool has_parent = false;
    std::uint64_t bytes = 0;
    host::FrameReader said = {};
    bool is_heard = true;  ///< false: it sent something that is not a message
  };
  void has(std::size_t host, std::uint64_t bytes);
  void take_address(std::size_t host, const host::TreeNews& news);

  const Package& package_;
  std::size_t hosts_;
  std::chrono::seconds serves_;
  RelayTree tree_;
  std::map<std::size_t, Member> members_;
  std::vector<Missed> missed_;
  bool is_sum_seen_ = false;
};

}  // namespace dtool::tree_sync
