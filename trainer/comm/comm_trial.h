// SPDX-License-Identifier: MIT
// One operation of `dtool-trainer comm` at one size on this rank: its tensors, the work, and the
// expected result. Every number is computed from rank, index and size.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/comm/exchange_plan.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

/// The numbers of a tensor; they repeat after a prime number of them. Empty: undefined.
using Pattern = std::vector<float>;

/// The input of rank `rank`.
Pattern pattern_of(int rank);
/// The sum of the inputs of `size` ranks; exact, since all are small whole numbers.
Pattern pattern_of_sum(int size);

/// A tensor of the operation.
struct Slot {
  at::Tensor tensor;
  Pattern before;  ///< undefined: filled with NaN, so that an unwritten number is wrong
  Pattern after;   ///< undefined: anything is right
};

/// How many numbers of the slot are wrong.
std::int64_t count_wrong(const Slot& slot);

/// Fills every slot with its numbers from before.
void fill(const std::vector<Slot>& slots);

struct Trial {
  /// The bytes as nccl-tests counts: what each rank has at the end, or at the beginning.
  std::int64_t bytes = 0;
  int messages = 1;  ///< messages that follow each other in one run; the time is for one of them
  std::vector<Slot> slots;
  std::function<void()> run;
  /// For a barrier, which has no slots: runs it and returns 1 if a rank had not arrived yet.
  std::function<std::int64_t()> run_checked;
};

/// Two ranks that exchange messages.
struct Pair {
  int first = 0;
  int second = 0;
};

/// This rank's part. A size that the ranks cannot share evenly is rounded down. `transport` carries
/// messages that are not the library's. For send_recv and isend_irecv only ranks of `pair` take
/// part; other ranks get a trial that does nothing.
Trial make_trial(Operation operation, Way way, std::int64_t bytes, const Group& group,
                 Transport* transport, const Pair& pair);

/// A barrier; `store` counts the ranks that have arrived.
Trial make_barrier_trial(const Group& group, c10d::Store& store);

// Carries our algorithms' messages by the library's own send and receive, for comparison with
// links.

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
