// SPDX-License-Identifier: MIT
// Which host gets which parcel from whom, so that each link carries the bytes about once: chains of
// hosts that grow as hosts ask. It only decides; others act.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace dtool::tree_sync {

class Schedule {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// After this many failed parents in a row, a host gets a parcel from the launcher. The same
  /// holds after this many tries for one parcel that failed for any reason.
  static constexpr int kMisses = 2;
  static constexpr int kTries = 6;
  /// A parent that failed this many hosts is not offered again, and a host that complained of so
  /// many others gets all from the launcher: it may lie.
  static constexpr int kFailed = 2;
  static constexpr int kComplaints = 4;
  /// A host that has received nothing for this long, and is incomplete, is not offered as a parent.
  static constexpr std::chrono::seconds kSilence{5};
  /// How long a host waits for a parent that serves no other.
  static constexpr std::chrono::milliseconds kCrowded{3000};
  /// Hosts that take their parcels one after another still serve the last few of them.
  static constexpr std::size_t kKept = 2;
  /// A host that gets less than this part of what fast ones get, and not for want of more where it
  /// gets it from, passes nothing on to others.
  static constexpr double kSlow = 0.25;
  /// So many hosts of at least three get the first parcel from the launcher: a slow one alone would
  /// make all look slow, and be the first to get the next one, too.
  static constexpr std::size_t kHeads = 2;
  /// So many hosts behind each other are named before the first byte has come.
  static constexpr std::size_t kDeep = 16;
  /// A host that has heard nothing for this long is to blame for nothing that others miss. Hosts
  /// tell once a second what came.
  static constexpr std::chrono::milliseconds kNews{2500};

  enum class From { launcher, host, nobody_yet };
  struct Source {
    From from = From::nobody_yet;
    std::size_t host = 0;  ///< set if `from` is `host`
    bool operator==(const Source&) const = default;
  };
  /// Whether the checksum of the parcel is known. Before that, no host may pass it on.
  enum class Sum { unknown, known };

  /// The source of a parcel for a host that has nothing of it yet. nobody_yet: the host is to ask
  /// again soon.
  Source source_for(std::size_t host, std::size_t parcel, Time now, Sum sum);

  enum class Serving { unknown, yes, no };
  /// Whether the host can serve what it takes to others from now on.
  void set_serving(std::size_t host, Serving serving);
  /// The host has received so many bytes of it. / It has everything.
  void got_more(std::size_t host, std::size_t parcel, std::uint64_t bytes, Time now);
  void got_all(std::size_t host, std::size_t parcel, Time now);

  enum class End {
    over,       ///< failed, or done: the host does not serve the parcel any more
    serves_on,  ///< done: it still serves the parcel, until it has taken kKept others
    missed,     ///< its parent did not send the parcel, and the host will ask again; does not count
                ///< against a parent that missed it itself or receives nothing at the time
    spoilt,     ///< like missed, but its parent sent wrong bytes
  };
  void ended(std::size_t host, std::size_t parcel, End end, Time now);

  /// Whether a host is to ask again from where this parcel comes.
  bool is_awaited(std::size_t parcel) const;

  /// Whether a host has been told to have a parcel from this one, and nothing of it has come yet.
  bool is_expected_by_any(std::size_t parent) const;

  /// No host has or takes the parcel any more: it will be sent with another key.
  void forget(std::size_t parcel);

  /// Whether it is known to be much slower than others. The host has asked before.
  bool is_slow(std::size_t host) const;

 private:
  /// One host's part in one parcel.
  struct Part {
    bool has_asked = false;
    bool is_receiving = false;
    Time since = {};  ///< the time since which it waits or receives
    Time heard = {};  ///< the time when it last received something
    std::uint64_t bytes = 0;
    std::size_t depth = 0;  ///< the number of parents above it
    bool has_all = false;
    Time all_at = {};
    std::optional<std::size_t> parent = {};  ///< the parent that still sends to it
    std::optional<std::size_t> sender = {};  ///< its last parent
    int tries = 0;
    std::size_t begun = 0;  ///< value of begun_ when it last began or missed
    std::size_t missed_at = 0;
    int blamed = 0;  ///< how much Member::failed grew because of this parcel
  };
  struct Member {
    bool has_asked = false;
    Serving serving = Serving::unknown;
    std::size_t children = 0;  ///< hosts that it sends to
    double rate = 0;           ///< bytes a second, the best so far; 0: not known
    bool is_limited = false;   ///< it got less than there was for it
    bool was_head = false;     ///< it had a parcel from the launcher
    int misses = 0;            ///< the number of misses since it last had something from a host
    bool was_served = false;   ///< a host has served it
    int complaints = 0;        ///< number of its misses in all
    int failed = 0;            ///< number of hosts that it failed as a parent
    std::set<std::size_t> avoids = {};  ///< parents that failed to send it something
    std::deque<std::size_t> kept = {};  ///< parcels that it has and serves
    /// The slow hosts that it sends to; `children` does not count them.
    std::set<std::size_t> slow_ones = {};
  };

  Part& part_of(std::size_t host, std::size_t parcel);
  Member& member_of(std::size_t host);
  Source begin(std::size_t host, std::size_t parcel, Time now, std::optional<std::size_t> parent);
  bool can_serve(std::size_t parent, std::size_t host, std::size_t parcel, Time now) const;
  std::optional<std::size_t> find_free(std::size_t host, std::size_t parcel, Time now) const;
  std::optional<std::size_t> find_any(std::size_t host, std::size_t parcel, Time now) const;
  bool is_fed(std::size_t host, std::size_t other, std::size_t parcel) const;
  bool has_room(std::size_t parent, std::size_t host) const;
  bool expects_parents(std::size_t host, std::size_t parcel, Time now) const;
  bool may_serve(std::size_t parent, std::size_t host) const;
  void let_go(std::size_t host, Part& part);
  void note_rate(std::size_t host, std::size_t parcel, Time now);
  void keep(std::size_t host, std::size_t parcel);
  bool is_hopeless() const { return !was_passed_on_ && are_apart_; }
  void note_miss(std::size_t host, std::size_t parent);
  static bool is_starved(const Part& part, Time now);
  static bool is_alive(const Part& part, Time now);

  std::size_t begun_ = 0;   ///< counts the beginnings of all hosts
  double fast_ = 0;         ///< the second of all rates
  double launchers_ = 0;    ///< the launcher's rate to one host, the best so far
  std::size_t asking_ = 0;  ///< hosts that have asked
  std::size_t heads_ = 0;   ///< hosts that had a parcel from the launcher
  /// Hosts that had nothing from the host that was named; both, the first few.
  std::vector<std::pair<std::size_t, std::size_t>> misses_;
  bool are_apart_ = false;                          ///< two of these have no host in common
  bool was_passed_on_ = false;                      ///< any host has passed something on
  std::vector<Member> members_;                     ///< the index is the host
  std::map<std::size_t, std::vector<Part>> parts_;  ///< the key is the parcel, the index the host
  /// The hosts that take or have the parcel (the key), in the order in which they began.
  std::map<std::size_t, std::vector<std::size_t>> takers_;
};

}  // namespace dtool::tree_sync
