// The seam between the plans of exchange_plan.h and what carries their messages: links of our own,
// or the library's send and receive.
#pragma once

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

class Transport {
 public:
  virtual ~Transport() = default;

  /// Does one round on this rank's `tensor`. Throws std::exception when a peer is gone or too slow.
  virtual void exchange(float* tensor, const Round& round) = 0;
};

/// Does all rounds of this rank.
inline void perform(const Plan& plan, Transport& transport, float* tensor) {
  for (const Round& each : plan) transport.exchange(tensor, each);
}

}  // namespace dtool::trainer
