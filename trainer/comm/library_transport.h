// SPDX-License-Identifier: MIT
// Carries our algorithms' messages by the library's own send and receive, for comparison with
// links.
#pragma once

#include "trainer/comm/transport.h"
#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

class LibraryTransport : public Transport {
 public:
  explicit LibraryTransport(const Group& group) : group_(group) {}

  /// `tensor` must be on the CPU.
  void perform(const Plan& plan, float* tensor) override;

 private:
  void exchange(float* tensor, const Round& round);

  Group group_;
};

}  // namespace dtool::trainer
