// One operation of `dtool-trainer comm` at one size, as this rank does it: its tensors, what is
// done with them, and what they must hold then. Every number is arithmetic on rank, index and size.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/comm/comm_options.h"
#include "trainer/comm/transport.h"
#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// The numbers of a tensor, which repeat after a prime number of them; empty: not defined.
using Pattern = std::vector<float>;

/// What rank `rank` puts in.
Pattern pattern_of(int rank);
/// The sum of what `size` ranks put in; exact, since all are small whole numbers.
Pattern pattern_of_sum(int size);

/// A tensor that takes part.
struct Slot {
  at::Tensor tensor;
  Pattern before;  ///< not defined: filled with NaN, so that what is not written is wrong
  Pattern after;   ///< not defined: anything
};

/// How many numbers of the slot are not what they must be.
std::int64_t count_wrong(const Slot& slot);

/// Puts in every slot what is there before.
void fill(const std::vector<Slot>& slots);

struct Trial {
  std::int64_t bytes = 0;  ///< as nccl-tests counts: what each rank has in the end, or begins with
  int messages = 1;        ///< that follow each other in one run; the time is for one of them
  std::vector<Slot> slots;
  std::function<void()> run;
  /// Of a barrier, which has no slots: does it and returns 1 if somebody was not there yet.
  std::function<std::int64_t()> run_checked;
};

/// Two ranks that exchange messages.
struct Pair {
  int first = 0;
  int second = 0;
};

/// This rank's part. A size that the ranks cannot share evenly is rounded down. `transport` carries
/// what is not the library's. For send_recv and isend_irecv only ranks of `pair` take part; others
/// get a trial that does nothing.
Trial make_trial(Operation operation, const Way& way, std::int64_t bytes, const Group& group,
                 Transport* transport, const Pair& pair);

/// A barrier; `store` counts who has come.
Trial make_barrier_trial(const Group& group, c10d::Store& store);

}  // namespace dtool::trainer
