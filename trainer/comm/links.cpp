// The calling thread itself moves the bytes. It looks for a while, since a peer's answer is often
// only microseconds away, and then sleeps in poll.
#include "trainer/comm/links.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "trainer/comm/linking.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

bool overlap(const Section& one, const Section& other) {
  return one.begin < other.end && other.begin < one.end;
}

}  // namespace

/// How far a round has come.
struct Links::Progress {
  const Round& round;
  bool overlapping;
  std::int64_t to_send;
  std::int64_t to_receive;
  std::int64_t sent = 0;
  std::int64_t received = 0;

  bool sends() const { return sent < to_send; }
  bool receives() const { return received < to_receive; }
  /// What went out must be what was there before: nothing comes in where something has yet to go.
  std::int64_t may_receive() const {
    return (overlapping && sends() ? std::min(sent, to_receive) : to_receive) - received;
  }
};

Links::Links(const Meeting& meeting, std::chrono::milliseconds timeout)
    : members_(meeting.members),
      timeout_(timeout),
      // Where ranks share cores, the peer cannot answer while this rank looks.
      patience_(meeting.place.local_world_size <= count_cores() ? 50 : 0),
      peers_(link_ranks(meeting, Clock::now() + timeout)) {}

bool Links::shares_memory_with(int rank) const {
  return peers_[static_cast<std::size_t>(rank)]->shares_memory();
}

void Links::exchange(float* tensor, const Round& round) {
  Progress progress{round, overlap(round.send, round.receive),
                    round.send_to == kNobody ? 0 : round.send.size(),
                    round.receive_from == kNobody ? 0 : round.receive.size()};
  auto since = Clock::now();
  while (progress.sends() || progress.receives()) {
    if (advance(tensor, progress)) {
      since = Clock::now();
    } else if (Clock::now() - since < patience_) {
      sched_yield();
    } else {
      sleep(progress, since + timeout_);
    }
  }
}

bool Links::advance(float* tensor, Progress& progress) {
  const Round& round = progress.round;
  int peer = kNobody;
  try {
    std::size_t moved = 0;
    if (progress.sends()) {
      peer = round.send_to;
      const auto sent = peers_[static_cast<std::size_t>(peer)]->try_send(
          tensor + round.send.begin + progress.sent,
          static_cast<std::size_t>(progress.to_send - progress.sent));
      progress.sent += static_cast<std::int64_t>(sent);
      moved += sent;
    }
    if (progress.receives() && progress.may_receive() > 0) {
      peer = round.receive_from;
      const auto received = peers_[static_cast<std::size_t>(peer)]->try_receive(
          tensor + round.receive.begin + progress.received,
          static_cast<std::size_t>(progress.may_receive()), round.combine);
      progress.received += static_cast<std::int64_t>(received);
      moved += received;
    }
    return moved > 0;
  } catch (const std::exception& problem) {
    throw std::runtime_error(
        fmt::format("{} {}", to_string(members_[static_cast<std::size_t>(peer)]), problem.what()));
  }
}

void Links::sleep(const Progress& progress, Deadline deadline) {
  struct Wait {
    PeerLink* link;
    PeerLink::Awaited awaited;
  };
  Wait waits[2];
  pollfd polled[2];
  nfds_t count = 0;
  const auto add = [&](int peer, PeerLink::Awaited awaited) {
    PeerLink* link = peers_[static_cast<std::size_t>(peer)].get();
    waits[count] = {link, awaited};
    polled[count++] = {link->descriptor(), link->poll_events(awaited), 0};
  };
  if (progress.sends()) add(progress.round.send_to, PeerLink::Awaited::room);
  if (progress.receives() && progress.may_receive() > 0) {
    add(progress.round.receive_from, PeerLink::Awaited::numbers);
  }
  bool nothing_yet = true;
  for (nfds_t i = 0; i < count; ++i) nothing_yet &= waits[i].link->prepare_sleep(waits[i].awaited);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  // However it ends, the caller looks again; a signal is no matter.
  if (nothing_yet && left > 0) poll(polled, count, static_cast<int>(left));
  for (nfds_t i = 0; i < count; ++i) waits[i].link->finish_sleep(polled[i].revents);
  if (left > 0 || !nothing_yet) return;
  const int peer = progress.receives() ? progress.round.receive_from : progress.round.send_to;
  throw std::runtime_error(fmt::format("{} gave no answer for {} s",
                                       to_string(members_[static_cast<std::size_t>(peer)]),
                                       timeout_.count() / 1000));
}

}  // namespace dtool::trainer
