// SPDX-License-Identifier: MIT
// Links the ranks, without threads or queues in between. With this transport our algorithms beat
// the library's on small tensors.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "trainer/comm/exchange_plan.h"
#include "trainer/comm/peer_link.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

using Deadline = std::chrono::steady_clock::time_point;

/// Only one thread at a time may use it.
class Links : public Transport {
 public:
  /// Links this rank to `peers`, each of which names this rank among its own; all ranks of the run
  /// must call it. Throws std::runtime_error (a reason for CollectiveFailed) if that takes longer
  /// than `timeout`. A later exchange throws it if nothing moves for that long.
  Links(const Meeting& meeting, std::set<int> peers, std::chrono::milliseconds timeout);
  /// The same with every other rank.
  Links(const Meeting& meeting, std::chrono::milliseconds timeout);

  /// `plan` has messages of peers only.
  void perform(const Plan& plan, float* tensor) override;

  /// False if the bytes go through TCP.
  bool shares_memory_with(int rank) const;

  /// From any thread: an exchange that is under way throws std::runtime_error, and so do all later
  /// ones.
  void stop();

 private:
  bool advance(float* tensor, PlanProgress& progress);
  void sleep(const PlanProgress& progress, Deadline deadline);

  std::vector<Member> members_;
  std::chrono::milliseconds timeout_;
  std::chrono::microseconds patience_;  ///< how long to poll before sleeping
  std::atomic<bool> stopped_ = false;
  host::Descriptor stop_;  ///< an eventfd, which wakes a sleeping exchange
  /// The index is the rank; null for ranks that are no peers.
  std::vector<std::unique_ptr<PeerLink>> peers_;
};

// How ranks are linked: a connection for each pair, and shared memory if both are on one machine.
// Addresses and the names of memory go through the run's store.

/// Links this rank to `peers`, each of which names this rank among its own. The result is indexed
/// by rank, and null for the others. All ranks must call it, at most once per run. Throws
/// std::runtime_error if a rank misses the deadline.
std::vector<std::unique_ptr<PeerLink>> link_ranks(const Meeting& meeting, std::set<int> peers,
                                                  Deadline deadline);

// Adds gradients over the ranks by our own messages. For the gradients of small networks this takes
// a fraction of the time of gloo's all-reduce.

/// Whether a run of `size` ranks on `device` adds up this way. Throws UsageError if one of our
/// algorithms is wanted on GPUs.
bool sums_by_links(Way wanted, at::Device device, int size);

/// The algorithm for that many bytes: `wanted`, or with `automatic` the fastest one in
/// docs/benchmarks.md.
Way algorithm_for(Way wanted, std::int64_t bytes);

/// The ranks that this rank exchanges messages with, whatever the number of bytes: with `automatic`
/// at most log2(size) + 2, so that thousands of ranks can be linked. Each of them has this rank
/// among its own.
std::set<int> peers_of(Way wanted, int rank, int size);

/// Only one thread at a time may use it.
class GradientSum {
 public:
  /// Links the ranks; all of them must call it. Throws as Links does.
  GradientSum(const Meeting& meeting, Way wanted, std::chrono::milliseconds timeout);

  /// Replaces every rank's `values` by their sum over the ranks, with equal bits on each.
  void add_up(float* values, std::int64_t count);

  /// From any thread: ends what `add_up` does, as Links::stop says.
  void stop() { links_.stop(); }

 private:
  Way wanted_;
  int rank_;
  int size_;
  Links links_;
  std::map<std::int64_t, Plan> plans_;  ///< the key is the number of values
};

}  // namespace dtool::trainer
