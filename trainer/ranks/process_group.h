// SPDX-License-Identifier: MIT
// The c10d process group over which the ranks exchange tensors: gloo on CPUs, NCCL on GPUs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "trainer/ranks/rendezvous.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// An operation among the ranks failed, usually because one of them is gone.
struct CollectiveFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `operation`, and turns all exceptions of c10d and its backends into CollectiveFailed.
template <class Operation>
void collectively(Operation operation) {
  try {
    operation();
  } catch (const std::exception& problem) {
    throw CollectiveFailed(first_line(problem));
  }
}

class GradientSum;

/// The ranks of a run as the training code sees them.
struct Group {
  int rank = 0;
  int size = 1;
  int local_size = 1;                                    ///< ranks of this machine
  at::Device device = at::kCPU;                          ///< the device on which this rank computes
  c10::intrusive_ptr<c10d::ProcessGroup> process_group;  ///< null if `size` is 1
  std::vector<Member> members;                           ///< the index is the rank
  std::shared_ptr<GradientSum> gradient_sum;             ///< null: the process group adds up
  c10::intrusive_ptr<c10d::Store> store;                 ///< the run's; only for `size` > 1
};

/// Every rank has found the same failure, so the words need no rank. (Other failures name the
/// rank.)
struct RunFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The backend for `wanted`: automatic means NCCL if it is built in and this machine has GPUs.
/// Throws UsageError if NCCL is wanted but missing.
Backend choose_backend(Backend wanted);

/// This rank's device: with NCCL the GPU of its local rank, else the CPU.
at::Device choose_device(Backend backend, int local_rank);

/// Connects the ranks. Every collective operation throws CollectiveFailed after `timeout`, or at
/// once if a peer's connection closes.
Group make_group(const Meeting& meeting, Backend backend, std::chrono::milliseconds timeout);

/// Adds up each of `values` over the ranks.
std::vector<double> sum_over_ranks(const Group& group, const std::vector<double>& values);

/// Returns when all ranks have called it.
void wait_for_all_ranks(const Group& group);

/// Returns when all ranks have called this with the same `what`, however long that takes: for work
/// whose length differs between ranks, and before collective operations, which have a limit. Throws
/// CollectiveFailed if the store is gone.
void wait_for_all_ranks(const Meeting& meeting, const std::string& what);

/// Copies rank 0's `tensor` to all ranks, in place; shapes must agree.
void broadcast(const Group& group, at::Tensor tensor);

/// Copies rank 0's text to all ranks; the other ranks' text is ignored.
std::string broadcast_text(const Group& group, const std::string& text);

/// The other ranks wait until rank 0 has called this with the same `what`, however long that takes:
/// before a collective operation, which has a limit, where rank 0 does something slow first. Each
/// `what` is good for once. Throws CollectiveFailed if the store is gone.
void wait_for_rank_0(const Group& group, const std::string& what);

}  // namespace dtool::trainer
