// Tells rank 0, which writes the checkpoints, what signals ask of the other ranks
// (launch/requests.h), and them that it has been done.
#pragma once

#include <array>
#include <cstdint>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace dtool::trainer {

/// A rank's end of it; used by the thread of its FailureWatch, once a second.
class RequestExchange {
 public:
  explicit RequestExchange(int rank) : rank_(rank) {}

  /// Ends the process when it was terminated and rank 0 has written its checkpoint.
  void exchange(c10d::Store& store);

 private:
  void tell(c10d::Store& store);
  void hear(c10d::Store& store);

  int rank_;
  std::array<std::int64_t, 2> heard_{};  ///< rank 0: how often each signal has been told of
  std::int64_t fulfilled_ = 0;           ///< rank 0: told; others: when they asked
  bool has_asked_to_end_ = false;
};

}  // namespace dtool::trainer
