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
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "trainer/comm/linking.h"

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
  if (stop_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  try {
    peers_ = link_ranks(meeting, std::move(peers), Clock::now() + timeout);
  } catch (...) {
    close(stop_);
    throw;
  }
}

Links::Links(const Meeting& meeting, std::chrono::milliseconds timeout)
    : Links(meeting, all_but(meeting.place.rank, meeting.place.world_size), timeout) {}

Links::~Links() {
  close(stop_);
}

void Links::stop() {
  stopped_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_, &one, sizeof one);  // never full
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
  polled[count] = {stop_, POLLIN, 0};
  if (nothing_yet && left > 0) poll(polled, count + 1, static_cast<int>(left));
  for (nfds_t i = 0; i < count; ++i) waits[i].link->finish_sleep(polled[i].revents);
  if (left > 0 || !nothing_yet) return;
  const int peer = receives ? progress.in().receive_from : progress.out().send_to;
  throw std::runtime_error(fmt::format("{} gave no answer for {} s",
                                       to_string(members_[static_cast<std::size_t>(peer)]),
                                       timeout_.count() / 1000));
}

}  // namespace dtool::trainer
