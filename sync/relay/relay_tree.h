// SPDX-License-Identifier: MIT
// Which host passes a package on to which: a tree that grows as hosts arrive. It only decides;
// others act.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace dtool::tree_sync {

class RelayTree {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The number of hosts that one host serves, unless others have waited for long.
  static constexpr std::size_t kFanOut = 3;
  /// After this many failed parents, a host gets the package from the launcher. The same holds
  /// after this many tries that failed for any reason.
  static constexpr int kMisses = 2;
  static constexpr int kTries = 6;
  /// A parent that failed this many hosts is not offered again.
  static constexpr int kFailed = 2;
  /// A host that has received nothing for this long, and is incomplete, is not offered as a parent.
  static constexpr std::chrono::seconds kSilence{5};
  /// How long a host waits for a parent that serves fewer than kFanOut.
  static constexpr std::chrono::seconds kCrowded{5};

  enum class From { launcher, host, nobody_yet };
  struct Source {
    From from = From::nobody_yet;
    std::size_t host = 0;  ///< set if `from` is `host`
    bool operator==(const Source&) const = default;
  };
  /// Whether the checksum of the package is known. Before that, no host may pass it on.
  enum class Sum { unknown, known };

  /// The source for a host that has nothing yet. nobody_yet: the host is to ask again soon.
  Source source_for(std::size_t host, Time now, Sum sum);

  /// The host can serve others from now on, or never.
  void serves(std::size_t host);
  void serves_nobody(std::size_t host);
  /// The host received something. / The host has everything.
  void got_more(std::size_t host, Time now);
  void got_all(std::size_t host);

  enum class End {
    over,    ///< done or failed: the host does not serve any more
    missed,  ///< its parent did not send the package, and the host will ask again; does not count
             ///< against a parent that missed it itself or receives nothing at the time
    spoilt,  ///< like missed, but its parent sent wrong bytes
  };
  void ended(std::size_t host, End end, Time now);

 private:
  enum class Serving { unknown, yes, no };
  struct Member {
    bool is_receiving = false;
    Serving serving = Serving::unknown;
    Time since = {};  ///< since when it waits or receives
    Time heard = {};  ///< when it last received something
    bool has_all = false;
    int failed = 0;  ///< number of hosts that it failed as a parent
    std::optional<std::size_t> parent = {};
    std::size_t children = 0;
    int misses = 0;
    int tries = 0;
    std::size_t begun = 0;  ///< value of begun_ when it last began or missed
    std::size_t missed_at = 0;
    std::set<std::size_t> avoids = {};  ///< parents that failed to send it the package
  };

  Source begin(Member& member, Time now, std::optional<std::size_t> parent);
  std::optional<std::size_t> best_parent(const Member& member, Time now) const;
  bool expects_parents(Time now) const;
  static bool is_starved(const Member& member, Time now);
  static bool is_alive(const Member& member, Time now);

  std::size_t begun_ = 0;  ///< counts the beginnings of all hosts
  std::map<std::size_t, Member> members_;
  std::vector<std::size_t> serving_;  ///< in the order in which they began
};

}  // namespace dtool::tree_sync
