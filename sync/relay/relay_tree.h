// Which host passes a package on to which: a tree that grows as hosts come. Decides, and does
// nothing.
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

  /// So many hosts one host serves, unless others have waited for long.
  static constexpr std::size_t kFanOut = 3;
  /// A host that so many parents have failed has the package from the launcher; so has one that
  /// began so often, whoever was to blame.
  static constexpr int kMisses = 2;
  static constexpr int kTries = 6;
  /// A parent that failed so many hosts is named to none again.
  static constexpr int kFailed = 2;
  /// Of a host that has not got all yet and got nothing for so long, nobody is told to have it.
  static constexpr std::chrono::seconds kSilence{5};
  /// A host waits for so long for a parent that serves fewer than kFanOut.
  static constexpr std::chrono::seconds kCrowded{5};

  enum class From { launcher, host, nobody_yet };
  struct Source {
    From from = From::nobody_yet;
    std::size_t host = 0;  ///< where `from` says host
    bool operator==(const Source&) const = default;
  };
  /// Whether it is known what a host has to hold the package against; before that none is passed
  /// on.
  enum class Sum { unknown, known };

  /// From where the host, which has nothing yet, has it from now on; nobody_yet: it is to ask again
  /// soon.
  Source source_for(std::size_t host, Time now, Sum sum);

  /// The host can serve others from now on, or never.
  void serves(std::size_t host);
  void serves_nobody(std::size_t host);
  /// It got something. / It has all.
  void got_more(std::size_t host, Time now);
  void got_all(std::size_t host);

  enum class End {
    over,    ///< done or failed: the host serves no longer
    missed,  ///< its parent did not give it the package: it is going to ask again. Of no account
             ///< where that missed it itself, or gets nothing at the time
    spoilt,  ///< likewise, and its parent gave it something else
  };
  void ended(std::size_t host, End end, Time now);

 private:
  enum class Serving { unknown, yes, no };
  struct Member {
    bool is_receiving = false;
    Serving serving = Serving::unknown;
    Time since = {};  ///< it waits, or receives
    Time heard = {};  ///< it last got something
    bool has_all = false;
    int failed = 0;  ///< so many that had it as their parent
    std::optional<std::size_t> parent = {};
    std::size_t children = 0;
    int misses = 0;
    int tries = 0;
    std::size_t begun = 0;  ///< when it last began, and missed, as begun_ counts
    std::size_t missed_at = 0;
    std::set<std::size_t> avoids = {};  ///< parents that did not give it the package
  };

  Source begin(Member& member, Time now, std::optional<std::size_t> parent);
  std::optional<std::size_t> best_parent(const Member& member, Time now) const;
  bool expects_parents(Time now) const;
  static bool is_starved(const Member& member, Time now);
  static bool is_alive(const Member& member, Time now);

  std::size_t begun_ = 0;  ///< one more whenever a host begins
  std::map<std::size_t, Member> members_;
  std::vector<std::size_t> serving_;  ///< in the order in which they began to
};

}  // namespace dtool::tree_sync
