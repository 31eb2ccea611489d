// SPDX-License-Identifier: MIT
// The schedule on networks that are made up: links with rates, hosts that die or cannot be reached.
// Time is simulated; a run of 1,000 hosts takes a second or less.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sync/copy/parcels.h"
#include "sync/schedule.h"

namespace dtool::tree_sync {
namespace {

using namespace std::chrono_literals;

constexpr double kStep = 0.02;       // seconds: hosts that wait ask as often
constexpr double kRoundTrip = 0.02;  // between a reply and the next parcel's first byte
constexpr double kBegins = 0.04;     // until a host says that it serves
constexpr double kNoAnswer = 3;      // of a host that cannot be reached
constexpr double kGivesUp = 10;      // without a first byte

struct Link {
  double in = 1e7;  ///< bytes a second
  double out = 1e7;
};

struct Network {
  std::vector<Link> hosts;
  double launcher = 1e7;
  std::vector<double> parcels;              ///< bytes of each
  std::set<std::size_t> unreachable = {};   ///< by other hosts
  std::map<std::size_t, double> dies = {};  ///< when
  std::set<std::size_t> liars = {};         ///< say that they were sent wrong bytes
  std::optional<double> deadline = {};
};

/// Equal hosts, and the parcels of so many bytes.
Network equal_hosts(std::size_t hosts, double bytes) {
  Network network;
  network.hosts.resize(hosts);
  const ParcelSizes sizes = parcel_sizes(hosts, static_cast<std::uint64_t>(bytes));
  while (bytes > 0) {
    const bool is_first = network.parcels.empty();
    const auto most = static_cast<double>(is_first ? sizes.first : sizes.most);
    network.parcels.push_back(std::min(bytes, most));
    bytes -= network.parcels.back();
  }
  return network;
}

class Simulation {
 public:
  explicit Simulation(Network network)
      : network_(std::move(network)), hosts_(network_.hosts.size()) {}

  /// Goes on until every host has all or is dead.
  void run() {
    constexpr double kMost = 100'000;
    for (; now_ < kMost && !is_over(); now_ += kStep) step();
    ASSERT_TRUE(is_over());
  }

  /// When the host had its last parcel, in seconds.
  double end_of(std::size_t host) const { return hosts_[host].ended; }
  double last_end() const {
    double last = 0;
    for (const Host& host : hosts_)
      if (!host.is_dead) last = std::max(last, host.ended);
    return last;
  }
  double sent_by_launcher() const { return sent_by_launcher_; }

 private:
  struct Host {
    std::size_t parcel = 0;  ///< that it takes or asks for
    bool is_taking = false;
    bool is_from_launcher = false;
    std::size_t parent = 0;
    int tries = 0;          ///< of this parcel
    int parents_tries = 0;  ///< when it began
    double begun = 0;
    double bytes = 0;  ///< of the parcel
    double rate = 0;
    std::optional<double> serves_at = {};
    double asks_at = 0;
    double ended = 0;
    bool is_dead = false;
  };

  Schedule::Time time() const {
    return Schedule::Time(std::chrono::microseconds(std::llround((now_ + 1000) * 1e6)));
  }
  bool is_over() const {
    return std::ranges::all_of(hosts_, [this](const Host& host) {
      return host.is_dead || host.parcel == network_.parcels.size();
    });
  }
  double size_of(std::size_t parcel) const { return network_.parcels[parcel]; }
  /// How much of a parcel the host has to give.
  double has(std::size_t host, std::size_t parcel) const {
    const Host& from = hosts_[host];
    if (from.parcel > parcel) return size_of(parcel);
    return from.parcel == parcel && from.is_taking ? from.bytes : 0;
  }

  void step() {
    for (const auto& [host, when] : network_.dies)
      if (now_ >= when && !hosts_[host].is_dead) die(host);
    for (std::size_t i = 0; i < hosts_.size(); ++i) ask(i);
    set_rates();
    for (std::size_t i = 0; i < hosts_.size(); ++i) move(i);
  }

  void die(std::size_t host) {
    Host& dead = hosts_[host];
    dead.is_dead = true;
    if (dead.is_taking) schedule_.ended(host, dead.parcel, Schedule::End::over, time());
    schedule_.set_serving(host, Schedule::Serving::no);
  }

  void ask(std::size_t index) {
    Host& host = hosts_[index];
    const bool is_done = host.is_dead || host.parcel == network_.parcels.size();
    if (is_done || host.is_taking || now_ < host.asks_at) return;
    const auto source = schedule_.source_for(index, host.parcel, time(), Schedule::Sum::known);
    if (source.from == Schedule::From::nobody_yet) return;
    host.is_taking = true;
    host.is_from_launcher = source.from == Schedule::From::launcher;
    host.parent = source.host;
    ++host.tries;
    host.parents_tries = hosts_[host.parent].tries;
    host.begun = now_;
    host.bytes = 0;
    if (!host.serves_at) host.serves_at = now_ + kBegins;
  }

  bool is_moving(const Host& host) const {
    if (!host.is_taking || now_ < host.begun + kRoundTrip) return false;
    if (host.is_from_launcher) return true;
    return !hosts_[host.parent].is_dead && !network_.unreachable.contains(host.parent) &&
           has(host.parent, host.parcel) > host.bytes;
  }

  /// Each sender shares its link among those that take from it. What one of them cannot use, since
  /// its own link is slower, the others have.
  void set_rates() {
    constexpr std::size_t kLauncher = static_cast<std::size_t>(-1);
    std::map<std::size_t, std::vector<std::size_t>> takers;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].rate = 0;
      if (!hosts_[i].is_dead && is_moving(hosts_[i]))
        takers[hosts_[i].is_from_launcher ? kLauncher : hosts_[i].parent].push_back(i);
    }
    for (auto& [sender, of_it] : takers) {
      std::ranges::sort(of_it, {}, [this](std::size_t each) { return network_.hosts[each].in; });
      double left = sender == kLauncher ? network_.launcher : network_.hosts[sender].out;
      std::size_t count = of_it.size();
      for (const std::size_t each : of_it) {
        hosts_[each].rate = std::min(left / static_cast<double>(count--), network_.hosts[each].in);
        left -= hosts_[each].rate;
      }
    }
  }

  void move(std::size_t index) {
    Host& host = hosts_[index];
    if (host.is_dead || !host.is_taking) return;
    if (host.serves_at && now_ >= *host.serves_at) {
      schedule_.set_serving(index, Schedule::Serving::yes);
      host.serves_at = 1e9;
    }
    const Host& parent = hosts_[host.parent];
    const bool is_cut =
        parent.parcel == host.parcel && (!parent.is_taking || parent.tries != host.parents_tries);
    const bool is_lost = !host.is_from_launcher && (parent.is_dead || is_cut);
    const double patience = network_.unreachable.contains(host.parent) ? kNoAnswer : kGivesUp;
    if (is_lost || (host.bytes == 0 && now_ > host.begun + patience)) {
      host.is_taking = false;
      schedule_.ended(index, host.parcel, Schedule::End::missed, time());
      return;
    }
    const double size = size_of(host.parcel);
    const double most = host.is_from_launcher ? size : has(host.parent, host.parcel);
    const double came = std::min(host.rate * kStep, most - host.bytes);
    if (came <= 0) return;
    if (host.is_from_launcher) sent_by_launcher_ += came;
    host.bytes += came;
    schedule_.got_more(index, host.parcel, static_cast<std::uint64_t>(host.bytes), time());
    if (host.bytes < size) return;
    if (!host.is_from_launcher) schedule_.got_all(index, host.parcel, time());
    if (!host.is_from_launcher && network_.liars.contains(index)) {
      host.is_taking = false;
      return schedule_.ended(index, host.parcel, Schedule::End::spoilt, time());
    }
    schedule_.ended(index, host.parcel, Schedule::End::serves_on, time());
    host.is_taking = false;
    ++host.parcel;
    host.tries = 0;
    host.ended = now_ + kStep;
    host.asks_at = now_ + kRoundTrip;
  }

  Network network_;
  std::vector<Host> hosts_;
  Schedule schedule_;
  double now_ = 0;
  double sent_by_launcher_ = 0;
};

TEST(ScheduleSimulation, EqualLinksAreUsedToTheFull) {
  for (const std::size_t hosts : {2, 3, 4, 8, 16, 32}) {
    Simulation simulation(equal_hosts(hosts, 1e8));
    simulation.run();
    EXPECT_LT(simulation.last_end(), 12.5) << hosts << " hosts; the links need 10 s";
    EXPECT_LT(simulation.sent_by_launcher(), 1.01e8) << hosts;
  }
}

TEST(ScheduleSimulation, ManyHostsHaveItSoon) {
  for (const std::size_t hosts : {100, 300, 1000}) {
    Simulation simulation(equal_hosts(hosts, 1e8));
    simulation.run();
    EXPECT_LT(simulation.last_end(), 30) << hosts << " hosts; the links need 10 s";
    EXPECT_LT(simulation.sent_by_launcher(), 1.5e8) << hosts;
  }
}

TEST(ScheduleSimulation, ASlowLauncherSendsOnce) {
  Network network = equal_hosts(16, 1e8);
  network.launcher = 1e6;
  Simulation simulation(network);
  simulation.run();
  EXPECT_LT(simulation.last_end(), 105) << "its link needs 100 s";
}

TEST(ScheduleSimulation, AHostThatIsTenTimesSlowerHoldsBackNobody) {
  for (std::size_t slow = 0; slow < 16; ++slow) {
    Network network = equal_hosts(16, 1e8);
    network.hosts[slow] = {1e6, 1e6};
    Simulation simulation(network);
    simulation.run();
    for (std::size_t host = 0; host < 16; ++host) {
      if (host == slow) continue;
      EXPECT_LT(simulation.end_of(host), 14.5) << host << " beside slow " << slow;
    }
    EXPECT_LT(simulation.end_of(slow), 110) << slow;
  }
}

TEST(ScheduleSimulation, ASlowHostHoldsBackNobodyHoweverLittleIsSent) {
  for (const double bytes : {2e6, 4e6, 1e7, 1.6e7, 4e7, 1e8}) {
    for (const std::size_t hosts : {4, 8, 16}) {
      Simulation without(equal_hosts(hosts, bytes));
      without.run();
      double worst = 0;
      for (std::size_t slow = 0; slow < hosts; ++slow) {
        Network network = equal_hosts(hosts, bytes);
        network.hosts[slow] = {1e6, 1e6};
        Simulation simulation(network);
        simulation.run();
        for (std::size_t host = 0; host < hosts; ++host)
          if (host != slow) worst = std::max(worst, simulation.end_of(host));
      }
      EXPECT_LT(worst, 1.2 * without.last_end() + 0.4) << hosts << " hosts, bytes: " << bytes;
    }
  }
}

TEST(ScheduleSimulation, AHostThatDiesCostsSeconds) {
  for (std::size_t dead = 0; dead < 8; ++dead) {
    for (const double when : {0.2, 1.5, 5.0}) {
      Network network = equal_hosts(8, 1e8);
      network.dies[dead] = when;
      Simulation simulation(network);
      simulation.run();
      EXPECT_LT(simulation.last_end(), 16) << dead << " dies after " << when;
    }
  }
}

TEST(ScheduleSimulation, OneThatComplainsOfAllOthersDoesNotSendAllToTheLauncher) {
  for (std::size_t liar = 0; liar < 16; ++liar) {
    Network network = equal_hosts(16, 1e9);
    network.liars.insert(liar);
    Simulation simulation(network);
    simulation.run();
    EXPECT_LT(simulation.last_end(), 430) << liar << " lies; the links need 100 s";
    EXPECT_LT(simulation.sent_by_launcher(), 4.3e9) << liar;
  }
}

TEST(ScheduleSimulation, HostsThatCannotReachEachOtherHaveItFromTheLauncher) {
  Network network = equal_hosts(8, 1e8);
  for (std::size_t host = 0; host < 8; ++host) network.unreachable.insert(host);
  Simulation simulation(network);
  simulation.run();
  EXPECT_LT(simulation.last_end(), 80 + 2 * kNoAnswer + 4);
}

TEST(ScheduleSimulation, AHostThatNobodyReachesIsNamedToTwo) {
  for (std::size_t hidden = 0; hidden < 8; ++hidden) {
    Network network = equal_hosts(8, 1e8);
    network.unreachable.insert(hidden);
    Simulation simulation(network);
    simulation.run();
    EXPECT_LT(simulation.last_end(), 12.5 + 3 * kNoAnswer + 2) << hidden;
  }
}

}  // namespace
}  // namespace dtool::tree_sync
