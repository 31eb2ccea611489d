// SPDX-License-Identifier: MIT
// The seam between the plans of exchange_plan.h and the transport of their messages: our own links,
// or the library's send and receive.
#pragma once

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

class Transport {
 public:
  virtual ~Transport() = default;

  /// Runs all rounds of this rank on its `tensor`. Throws std::exception if a peer is gone or too
  /// slow.
  virtual void perform(const Plan& plan, float* tensor) = 0;
};

}  // namespace dtool::trainer
