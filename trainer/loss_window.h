// Loss and throughput between two lines of the log.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>

#include "trainer/process_group.h"

namespace dtool::trainer {

/// Sums over all ranks; seconds are this rank's.
struct LossSums {
  double loss = 0;  ///< of each sample
  double samples = 0;
  double seconds = 0;

  void operator+=(const LossSums& other) {
    loss += other.loss;
    samples += other.samples;
    seconds += other.seconds;
  }
};

/// Sums since they were last taken. The loss stays on the device, so that no step waits for it.
class LossWindow {
 public:
  explicit LossWindow(at::Device device);

  void add(const at::Tensor& mean_loss, std::int64_t samples);
  /// A collective operation; begins anew.
  LossSums take(const Group& group);
  void begin_again();

 private:
  at::Tensor loss_;
  std::int64_t samples_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace dtool::trainer
