// Every rank linked to every other, without threads or queues between: the transport by which our
// own algorithms beat the library's on small tensors.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "trainer/comm/peer_link.h"
#include "trainer/comm/plan_progress.h"
#include "trainer/comm/transport.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// For one thread at a time.
class Links : public Transport {
 public:
  /// Links the ranks of a run; all of them must call it. Throws CollectiveFailed-worthy
  /// std::runtime_error when that takes longer than `timeout`, as later does an exchange in which
  /// nothing moves for so long.
  Links(const Meeting& meeting, std::chrono::milliseconds timeout);

  void perform(const Plan& plan, float* tensor) override;

  /// False if the bytes go through TCP.
  bool shares_memory_with(int rank) const;

 private:
  bool advance(float* tensor, PlanProgress& progress);
  void sleep(const PlanProgress& progress, Deadline deadline);

  std::vector<Member> members_;
  std::chrono::milliseconds timeout_;
  std::chrono::microseconds patience_;            ///< how long to look before going to sleep
  std::vector<std::unique_ptr<PeerLink>> peers_;  ///< by rank; null at this one's own
};

}  // namespace dtool::trainer
