// SPDX-License-Identifier: MIT
// The thresholds are from `dtool-trainer comm`: docs/benchmarks.md has the tables.
#include "trainer/comm/gradient_sum.h"

#include <stdexcept>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr std::int64_t kFewBytes = 16 << 10;  ///< the number of rounds counts
constexpr std::int64_t kManyBytes = 4 << 20;  ///< the messages to the neighbour count

}  // namespace

bool sums_by_links(AllReduce wanted, at::Device device, int size) {
  if (wanted == AllReduce::library || size == 1) return false;
  if (wanted == AllReduce::automatic) return device.is_cpu();
  if (device.is_cpu()) return true;
  throw UsageError("distributed.all_reduce names an algorithm for CPUs, but this run is on GPUs",
                   "leave it out, or make it \"library\", which is NCCL");
}

Algorithm algorithm_for(AllReduce wanted, std::int64_t bytes) {
  switch (wanted) {
    case AllReduce::automatic:
      if (bytes <= kFewBytes) return Algorithm::doubling;
      return bytes <= kManyBytes ? Algorithm::halving_doubling : Algorithm::ring;
    case AllReduce::ring:
      return Algorithm::ring;
    case AllReduce::pairwise:
      return Algorithm::pairwise;
    case AllReduce::halving_doubling:
      return Algorithm::halving_doubling;
    case AllReduce::doubling:
      return Algorithm::doubling;
    case AllReduce::library:
      break;
  }
  throw std::logic_error("the library's all-reduce is none of ours");
}

std::set<int> peers_of(AllReduce wanted, int rank, int size) {
  std::set<int> peers;
  for (const auto bytes : {kFewBytes, kManyBytes, kManyBytes + 1}) {
    peers.merge(peers_in(plan_all_reduce(algorithm_for(wanted, bytes), rank, size, size)));
  }
  return peers;
}

GradientSum::GradientSum(const Meeting& meeting, AllReduce wanted,
                         std::chrono::milliseconds timeout)
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
