// SPDX-License-Identifier: MIT
// Averages gradients by our own messages, as the reducer of data_parallel.cpp asks: while the
// backward pass goes on, where there is enough to send.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// Buckets are averaged in the order in which they come, which is the same on every rank. A small
/// one is averaged in the thread of the backward pass: its messages are shorter than the way to
/// another thread and back. A large one, and all that come before it is done, are averaged in a
/// thread beside it. Futures have CollectiveFailed if a peer is gone.
class LinkedAverage : public c10d::CommHookInterface {
 public:
  /// `group` has a gradient_sum, which nothing else uses meanwhile.
  explicit LinkedAverage(Group group) : group_(std::move(group)) {}
  /// Gives up what has not been averaged.
  ~LinkedAverage() override;
  LinkedAverage(const LinkedAverage&) = delete;
  LinkedAverage& operator=(const LinkedAverage&) = delete;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;
  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;
  struct Bucket {
    at::Tensor gradients;
    Future averaged;
  };

  bool is_idle();
  void leave_to_thread(Bucket bucket);
  void work();
  void average(const at::Tensor& gradients);

  Group group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bucket> waiting_;  ///< the first is being averaged
  bool stopped_ = false;
  std::exception_ptr error_;  ///< of the thread: the links are of no use any more
  std::thread thread_;        ///< begins with the first large bucket
};

}  // namespace dtool::trainer
