// SPDX-License-Identifier: MIT
// Adds gradients over the ranks by our own messages. For the gradients of small networks this takes
// a fraction of the time of gloo's all-reduce.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>

#include "trainer/comm/links.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// Whether a run of `size` ranks on `device` adds up this way. Throws UsageError if one of our
/// algorithms is wanted on GPUs.
bool sums_by_links(AllReduce wanted, at::Device device, int size);

/// The algorithm for that many bytes: `wanted`, or with `automatic` the fastest one in
/// docs/benchmarks.md.
Algorithm algorithm_for(AllReduce wanted, std::int64_t bytes);

/// The ranks that this rank exchanges messages with, whatever the number of bytes: with `automatic`
/// at most log2(size) + 2, so that thousands of ranks can be linked. Each of them has this rank
/// among its own.
std::set<int> peers_of(AllReduce wanted, int rank, int size);

/// Only one thread at a time may use it.
class GradientSum {
 public:
  /// Links the ranks; all of them must call it. Throws as Links does.
  GradientSum(const Meeting& meeting, AllReduce wanted, std::chrono::milliseconds timeout);

  /// Replaces every rank's `values` by their sum over the ranks, with equal bits on each.
  void add_up(float* values, std::int64_t count);

  /// From any thread: ends what `add_up` does, as Links::stop says.
  void stop() { links_.stop(); }

 private:
  AllReduce wanted_;
  int rank_;
  int size_;
  Links links_;
  std::map<std::int64_t, Plan> plans_;  ///< the key is the number of values
};

}  // namespace dtool::trainer
