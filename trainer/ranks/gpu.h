// SPDX-License-Identifier: MIT
// Everything that the trainer needs from CUDA and NCCL. Only gpu.cpp depends on whether LibTorch
// has them.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <torch/version.h>
#include <chrono>
#include <functional>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer::gpu {

#if TORCH_VERSION_MAJOR >= 2
using CommunicationBackend = c10d::Backend;
#else
using CommunicationBackend = c10d::ProcessGroup;
#endif

/// GPUs that this process sees; 0 if there are none, or if this program was built without CUDA.
int count();

/// Selects GPU `index` and a new stream on it for this thread. The stream is not the default one
/// from the start, because steps can only be recorded on another stream, and autograd remembers the
/// stream on which a parameter was first used.
void use(int index);

/// Connects the ranks with NCCL over this rank's current GPU. If an operation takes longer than
/// `timeout`, or a peer is gone, a thread of the group throws an exception; worker.h handles it.
c10::intrusive_ptr<CommunicationBackend> connect_nccl(const Meeting& meeting,
                                                      std::chrono::milliseconds timeout);

/// Has cuBLASLt do matrix products from now on, in this process. Its choice of a kernel for small
/// ones can be the better one, cuBLAS's for large ones.
void prefer_cublas_lt();

/// Records the operations that `work` launches on this thread's GPU and stream, without executing
/// them. Each call of the result executes them all. Throws c10::Error if something cannot be
/// recorded.
std::function<void()> record(const std::function<void()>& work);

}  // namespace dtool::trainer::gpu
