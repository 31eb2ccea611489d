// SPDX-License-Identifier: MIT
// All of data parallelism: equal parameters on every rank, and gradients averaged while the
// backward pass computes them. PyTorch's own c10d::Reducer decides when to average which gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <vector>

#include "trainer/ranks/process_group.h"

namespace c10d {
class Reducer;
}

namespace dtool::trainer {

/// Whether a backward pass ends a step: only then are gradients exchanged.
enum class AcrossRanks { no, yes };

/// Lives as long as the training of `parameters`.
class DataParallel {
 public:
  /// Copies rank 0's parameters to all ranks. The parameters are leaves that require gradients.
  DataParallel(Group group, std::vector<at::Tensor> parameters);
  ~DataParallel();

  /// Clears the gradients of the previous step.
  void begin_step();

  /// Adds the gradients of `loss` (a scalar, each rank's own) to the parameters' gradients. With
  /// the exchange, replaces them by the average over the ranks of all gradients since `begin_step`.
  /// Every parameter must take part in `loss`.
  void backward(const at::Tensor& loss, AcrossRanks across);

  /// Runs one backward pass whose gradients are dropped. The reducer sorts its buckets again after
  /// its first pass, and with three or more ranks the order of addition follows the buckets. With
  /// the buckets settled in advance, a resumed run adds up exactly as an uninterrupted one.
  void settle(const std::function<at::Tensor()>& loss);

 private:
  Group group_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<c10d::Reducer> reducer_;  ///< null if there is one rank
};

// Averages gradients by our own messages, as the reducer of data_parallel.cpp asks: while the
// backward pass goes on, where there is enough to send.

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
  std::exception_ptr error_;  ///< the thread's error: the links are of no use any more
  std::thread thread_;        ///< begins with the first large bucket
};

}  // namespace dtool::trainer
