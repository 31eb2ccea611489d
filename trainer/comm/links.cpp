// SPDX-License-Identifier: MIT
// The calling thread itself moves the bytes. It first polls for a while, since a peer's answer is
// often only microseconds away, and then sleeps in poll().
#include "trainer/comm/links.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "ssh/wire/words.h"
#include "trainer/launch/greeting.h"
#include "trainer/launch/network.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

using Clock = std::chrono::steady_clock;

std::set<int> all_but(int rank, int size) {
  std::set<int> others;
  for (int each = 0; each < size; ++each) others.insert(each);
  others.erase(rank);
  return others;
}

}  // namespace

Links::Links(const Meeting& meeting, std::set<int> peers, std::chrono::milliseconds timeout)
    : members_(meeting.members),
      timeout_(timeout),
      // Where ranks share cores, the peer cannot answer while this rank looks.
      patience_(meeting.place.local_world_size <= count_cores() ? 50 : 0),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_.is_open()) throw std::system_error(errno, std::generic_category(), "eventfd");
  peers_ = link_ranks(meeting, std::move(peers), Clock::now() + timeout);
}

Links::Links(const Meeting& meeting, std::chrono::milliseconds timeout)
    : Links(meeting, all_but(meeting.place.rank, meeting.place.world_size), timeout) {}

void Links::stop() {
  stopped_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_.get(), &one, sizeof one);  // never full
}

bool Links::shares_memory_with(int rank) const {
  return peers_[static_cast<std::size_t>(rank)]->shares_memory();
}

void Links::perform(const Plan& plan, float* tensor) {
  PlanProgress progress(plan);
  auto since = Clock::now();
  while (!progress.is_done()) {
    if (stopped_) throw std::runtime_error("the exchange was given up");
    if (advance(tensor, progress)) {
      since = Clock::now();
    } else if (Clock::now() - since < patience_) {
      sched_yield();
    } else {
      sleep(progress, since + timeout_);
    }
  }
}

bool Links::advance(float* tensor, PlanProgress& progress) {
  int peer = kNobody;
  try {
    std::size_t moved = 0;
    if (const auto count = progress.may_send(); count > 0) {
      peer = progress.out().send_to;
      const auto sent = peers_[static_cast<std::size_t>(peer)]->try_send(
          tensor + progress.out().send.begin + progress.sent(), static_cast<std::size_t>(count));
      progress.add_sent(static_cast<std::int64_t>(sent));
      moved += sent;
    }
    if (const auto count = progress.may_receive(); count > 0) {
      peer = progress.in().receive_from;
      const auto received = peers_[static_cast<std::size_t>(peer)]->try_receive(
          tensor + progress.in().receive.begin + progress.received(),
          static_cast<std::size_t>(count), progress.in().combine);
      progress.add_received(static_cast<std::int64_t>(received));
      moved += received;
    }
    return moved > 0;
  } catch (const std::exception& problem) {
    throw std::runtime_error(
        fmt::format("{} {}", to_string(members_[static_cast<std::size_t>(peer)]), problem.what()));
  }
}

void Links::sleep(const PlanProgress& progress, Deadline deadline) {
  struct Wait {
    PeerLink* link;
    PeerLink::Awaited awaited;
  };
  Wait waits[2];
  pollfd polled[3];
  nfds_t count = 0;
  const auto add = [&](int peer, PeerLink::Awaited awaited) {
    PeerLink* link = peers_[static_cast<std::size_t>(peer)].get();
    waits[count] = {link, awaited};
    polled[count++] = {link->descriptor(), link->poll_events(awaited), 0};
  };
  const bool receives = progress.may_receive() > 0;
  if (progress.may_send() > 0) add(progress.out().send_to, PeerLink::Awaited::room);
  if (receives) add(progress.in().receive_from, PeerLink::Awaited::numbers);
  bool nothing_yet = true;
  for (nfds_t i = 0; i < count; ++i) nothing_yet &= waits[i].link->prepare_sleep(waits[i].awaited);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  // However it ends, the caller looks again; a signal is no matter.
  polled[count] = {stop_.get(), POLLIN, 0};
  if (nothing_yet && left > 0) poll(polled, count + 1, static_cast<int>(left));
  for (nfds_t i = 0; i < count; ++i) waits[i].link->finish_sleep(polled[i].revents);
  if (left > 0 || !nothing_yet) return;
  const int peer = receives ? progress.in().receive_from : progress.out().send_to;
  throw std::runtime_error(fmt::format("{} gave no answer for {} s",
                                       to_string(members_[static_cast<std::size_t>(peer)]),
                                       timeout_.count() / 1000));
}

// In each pair the higher rank connects, and the lower one offers memory. Each step is done with
// all peers before the next step, so that no two ranks wait for each other.

namespace {

std::uint64_t random_token() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

/// GLOO_SOCKET_IFNAME counts here as it does for gloo, but one interface is enough.
std::string own_address(const Meeting& meeting) {
  const auto interfaces = wanted_interfaces();
  if (interfaces.empty()) return reachable_address(meeting.me(), meeting.members);
  const auto address = address_of_interface(interfaces.front());
  if (!address.empty()) return address;
  throw std::runtime_error(fmt::format("GLOO_SOCKET_IFNAME: no address on {}", interfaces.front()));
}

/// The name of a rank's door, and the key of its place in the store: a greeting for one rank is of
/// no use at another's.
std::string door_of(int rank) {
  return fmt::format("link/{}", rank);
}

/// The key of the memory that the lower rank of a pair offers: a token and a name for
/// SharedMemory::open; empty if it has none.
std::string offer_of(int lower, int higher) {
  return fmt::format("link/{}/{}", lower, higher);
}

/// The key of the higher one's answer: `yes` or `no`.
std::string answer_of(int lower, int higher) {
  return offer_of(lower, higher) + "/answer";
}

/// All the pairs of this rank while they are being linked, by rank of the peer.
class Linking {
 public:
  Linking(const Meeting& meeting, std::set<int> peers, Deadline deadline)
      : meeting_(meeting),
        rank_(meeting.place.rank),
        size_(meeting.place.world_size),
        lower_(peers.begin(), peers.lower_bound(rank_)),
        higher_(peers.upper_bound(rank_), peers.end()),
        deadline_(deadline),
        sockets_(static_cast<std::size_t>(size_)),
        memories_(static_cast<std::size_t>(size_)) {}

  std::vector<std::unique_ptr<PeerLink>> link();

 private:
  void connect_to_lower_ranks();
  void accept_higher_ranks(FrontDoor& door);
  void offer_memory(int peer);
  void answer_offer(int peer);
  void hear_answer(int peer);
  void note_no_memory(const std::string& why);
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
  }
  std::string await(const std::string& key) const {
    meeting_.store->wait({key}, left());
    return text_at(*meeting_.store, key);
  }
  host::Descriptor& socket_of(int peer) { return sockets_[static_cast<std::size_t>(peer)]; }
  std::optional<SharedMemory>& memory_of(int peer) {
    return memories_[static_cast<std::size_t>(peer)];
  }
  const Member& member(int rank) const { return meeting_.members[static_cast<std::size_t>(rank)]; }

  const Meeting& meeting_;
  int rank_;
  int size_;
  std::set<int> lower_;   ///< peers
  std::set<int> higher_;  ///< peers
  Deadline deadline_;
  std::vector<host::Descriptor> sockets_;
  std::vector<std::optional<SharedMemory>> memories_;
  bool is_noted_ = false;  ///< it was noted that there is no memory
};

std::vector<std::unique_ptr<PeerLink>> Linking::link() {
  const auto address = own_address(meeting_);
  FrontDoor door({address, 0}, door_of(rank_), higher_.size() + 1);
  put(*meeting_.store, door_of(rank_), to_string(Endpoint{address, door.port()}));
  connect_to_lower_ranks();
  accept_higher_ranks(door);
  for (const int peer : higher_) offer_memory(peer);
  for (const int peer : lower_) answer_offer(peer);
  for (const int peer : higher_) hear_answer(peer);

  std::vector<std::unique_ptr<PeerLink>> links(static_cast<std::size_t>(size_));
  for (int peer = 0; peer < size_; ++peer) {
    if (!socket_of(peer)) continue;
    auto& link = links[static_cast<std::size_t>(peer)];
    if (auto& memory = memory_of(peer)) {
      const int side = rank_ < peer ? 0 : 1;
      link = std::make_unique<PeerLink>(std::move(socket_of(peer)), std::move(*memory), side);
    } else {
      link = std::make_unique<PeerLink>(std::move(socket_of(peer)));
    }
  }
  return links;
}

/// A lower peer answers when it is itself linked to its own lower ones; rank 0 at once.
void Linking::connect_to_lower_ranks() {
  for (const int peer : lower_) {
    const Endpoint place = parse_endpoint(await(door_of(peer)));
    socket_of(peer) = call_at(place, door_of(peer), rank_, left()).socket;
  }
}

void Linking::accept_higher_ranks(FrontDoor& door) {
  for (std::size_t missing = higher_.size(); missing > 0;) {
    const std::int64_t remaining = left().count();  // milliseconds
    if (remaining <= 0) throw std::runtime_error("not all ranks came to be linked");
    pollfd waited{door.watch().descriptor(), POLLIN, 0};
    poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(remaining, 1000)));
    for (host::Caller& caller : door.take()) {
      if (!higher_.contains(caller.place) || socket_of(caller.place)) continue;
      say(caller, "");
      socket_of(caller.place) = caller.wire.release();
      --missing;
    }
  }
}

void Linking::offer_memory(int peer) {
  if (!on_one_machine(meeting_.me(), member(peer))) return;
  std::string offer;
  try {
    auto& memory = memory_of(peer).emplace(sizeof(SharedLink));
    const std::uint64_t token = random_token();
    reinterpret_cast<SharedLink*>(memory.data())->token = token;
    offer = fmt::format("{} {}", token, memory.name());
  } catch (const std::system_error& problem) {
    note_no_memory(problem.what());  // the peer will answer that it has found none
  }
  put(*meeting_.store, offer_of(rank_, peer), offer);
}

/// Once, however many peers there are.
void Linking::note_no_memory(const std::string& why) {
  if (std::exchange(is_noted_, true)) return;
  fmt::print("note: rank {} uses TCP to other ranks of machine {} ({}), which is slower: {}\n",
             rank_, meeting_.me().machine, meeting_.me().host, why);
  std::fflush(stdout);
}

void Linking::answer_offer(int peer) {
  if (!on_one_machine(meeting_.me(), member(peer))) return;
  const std::string offer = await(offer_of(peer, rank_));
  const auto blank = std::min(offer.find(' '), offer.size());
  const auto token = host::parse_number<std::uint64_t>(offer.substr(0, blank));
  const std::string name = offer.substr(std::min(blank + 1, offer.size()));
  auto memory = SharedMemory::open(name, sizeof(SharedLink));
  const bool found = memory && reinterpret_cast<SharedLink*>(memory->data())->token == token;
  if (found) memory_of(peer).emplace(std::move(*memory));
  put(*meeting_.store, answer_of(peer, rank_), found ? "yes" : "no");
}

void Linking::hear_answer(int peer) {
  if (!on_one_machine(meeting_.me(), member(peer))) return;
  if (await(answer_of(rank_, peer)) == "yes" && memory_of(peer)) {
    memory_of(peer)->forget_name();
  } else {
    memory_of(peer).reset();
  }
}

}  // namespace

std::vector<std::unique_ptr<PeerLink>> link_ranks(const Meeting& meeting, std::set<int> peers,
                                                  Deadline deadline) {
  return Linking(meeting, std::move(peers), deadline).link();
}

// The thresholds are from `dtool-trainer comm`: docs/benchmarks.md has the tables.

namespace {

constexpr std::int64_t kFewBytes = 16 << 10;  ///< the number of rounds counts
constexpr std::int64_t kManyBytes = 4 << 20;  ///< the messages to the neighbour count

}  // namespace

bool sums_by_links(Way wanted, at::Device device, int size) {
  if (wanted == Way::library || size == 1) return false;
  if (wanted == Way::automatic) return device.is_cpu();
  if (device.is_cpu()) return true;
  throw UsageError("distributed.all_reduce names an algorithm for CPUs, but this run is on GPUs",
                   "leave it out, or make it \"library\", which is NCCL");
}

Way algorithm_for(Way wanted, std::int64_t bytes) {
  if (wanted != Way::automatic) return wanted;
  if (bytes <= kFewBytes) return Way::doubling;
  return bytes <= kManyBytes ? Way::halving_doubling : Way::ring;
}

std::set<int> peers_of(Way wanted, int rank, int size) {
  std::set<int> peers;
  for (const auto bytes : {kFewBytes, kManyBytes, kManyBytes + 1}) {
    peers.merge(peers_in(plan_all_reduce(algorithm_for(wanted, bytes), rank, size, size)));
  }
  return peers;
}

GradientSum::GradientSum(const Meeting& meeting, Way wanted, std::chrono::milliseconds timeout)
    : wanted_(wanted),
      rank_(meeting.place.rank),
      size_(meeting.place.world_size),
      links_(meeting, peers_of(wanted, rank_, size_), timeout) {}

void GradientSum::add_up(float* values, std::int64_t count) {
  auto plan = plans_.find(count);
  if (plan == plans_.end()) {
    const auto bytes = count * static_cast<std::int64_t>(sizeof(float));
    const auto algorithm = algorithm_for(wanted_, bytes);
    plan = plans_.emplace(count, plan_all_reduce(algorithm, rank_, size_, count)).first;
  }
  links_.perform(plan->second, values);
}

}  // namespace dtool::trainer
