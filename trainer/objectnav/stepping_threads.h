// SPDX-License-Identifier: MIT
// Steps samplers on other threads. Meanwhile the calling thread lets the network choose the other
// samplers' actions.
#pragma once

#include <memory>

#include "trainer/objectnav/samplers.h"

namespace dtool::trainer {

/// The arrays of `Samplers::step`.
struct StepArrays {
  const std::uint8_t* actions = nullptr;
  float* rewards = nullptr;
  std::uint8_t* ended = nullptr;
  std::uint8_t* observations = nullptr;
};

/// Threads that live as long as this object and sleep between steps. A step allocates nothing.
class SteppingThreads {
 public:
  /// `samplers` must outlive this. With `threads` 0, `begin` steps on the caller's thread.
  SteppingThreads(Samplers& samplers, int threads);
  ~SteppingThreads();

  /// Begins to step the samplers [begin, end), divided equally among the threads. The arrays must
  /// stay until `wait`, which must be called before the next `begin`.
  void begin(int begin, int end, const StepArrays& arrays);
  /// Returns when the step is done.
  void wait();

 private:
  struct Shared;
  Samplers& samplers_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace dtool::trainer
