// Time in which this process itself was held up: by the clock it is the others' silence, and is
// not.
#pragma once

#include <chrono>

namespace dtool::trainer {

class OwnPause {
 public:
  using Clock = std::chrono::steady_clock;

  /// `usual`: so far apart looks may be.
  explicit OwnPause(Clock::duration usual) : usual_(usual) {}

  /// Call at each look. By how much more than usual the last one is ago, or 0: where all looks are
  /// slow, silence is found all the same, only later.
  Clock::duration take(Clock::time_point now = Clock::now()) {
    const auto since = now - last_look_;
    last_look_ = now;
    return since > usual_ ? since - usual_ : Clock::duration::zero();
  }

 private:
  Clock::duration usual_;
  Clock::time_point last_look_ = Clock::now();
};

}  // namespace dtool::trainer
