// Gradients added up over the ranks by messages of our own, which for the sizes that gradients of
// small networks have take a fraction of the time that gloo's all-reduce takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "trainer/comm/links.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// Whether a run of `size` ranks on `device` adds up so. Throws UsageError if an algorithm of
/// ours is wanted on GPUs.
bool sums_by_links(AllReduce wanted, at::Device device, int size);

/// The algorithm for so many bytes: `wanted`, or with `automatic` the one that was quickest in
/// docs/benchmarks.md.
Algorithm algorithm_for(AllReduce wanted, std::int64_t bytes);

/// For one thread at a time.
class GradientSum {
 public:
  /// Links the ranks; all of them must call it. Errors are those of Links.
  GradientSum(const Meeting& meeting, AllReduce wanted, std::chrono::milliseconds timeout);

  /// Every rank's `values` become their sum over the ranks, the same bits on each.
  void add_up(float* values, std::int64_t count);

 private:
  AllReduce wanted_;
  int rank_;
  int size_;
  Links links_;
  std::map<std::int64_t, Plan> plans_;  ///< by the number of values
};

}  // namespace dtool::trainer
