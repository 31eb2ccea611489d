// SPDX-License-Identifier: MIT
// How the ranks of a run find each other: rank 0 listens, every rank signs in, and all wait until
// the last one has.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/launch/launch.h"

namespace dtool::trainer {

/// The data with which a rank signs in.
struct Member {
  int rank = 0;
  int machine = 0;
  std::string host;     ///< the machine's own name, for messages
  std::string address;  ///< its address on the route to rank 0
};

/// Whether two ranks share their memory.
bool on_one_machine(const Member& one, const Member& other);

/// `rank 3 on machine 1 (red02)`.
std::string to_string(const Member& member);

/// This rank cannot continue because of another rank.
struct OtherRankFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All ranks of the run, signed in.
struct Meeting {
  Place place;
  c10::intrusive_ptr<c10d::Store> store;
  std::vector<Member> members;  ///< the index is the rank

  const Member& me() const { return members[static_cast<std::size_t>(place.rank)]; }
};

/// Signs in and waits for the others. After `timeout` throws OtherRankFailed naming the missing
/// machines and ranks (rank 0 knows them and tells the others). Throws UsageError if rank 0 cannot
/// listen there, or if machines disagree about their number of workers.
Meeting meet(const Place& place, std::chrono::seconds timeout);

/// A separate connection to the store of `listener`, for another thread.
c10::intrusive_ptr<c10d::Store> connect_store(const Endpoint& listener,
                                              std::chrono::milliseconds timeout);

// Texts in the run's store.

/// The time limit of a wait for other ranks: RequestExchange watches for failures meanwhile.
inline constexpr std::chrono::hours kForAsLongAsItTakes{24 * 365};

void put(c10d::Store& store, const std::string& key, const std::string& text);
/// Waits until there is one, as long as the store itself does.
std::string text_at(c10d::Store& store, const std::string& key);

/// The number of machines of the members.
int count_machines(const std::vector<Member>& members);

/// This rank's address for its peers: the one on the route to rank 0. If that is a loopback address
/// (rank 0's name often means 127.0.1.1 on its own machine) while other machines have real ones,
/// the address on the route to them.
std::string reachable_address(const Member& me, const std::vector<Member>& members);

/// The first line of an exception's message, without LibTorch's stack trace.
std::string first_line(const std::exception& problem);

}  // namespace dtool::trainer
