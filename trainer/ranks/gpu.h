// All that the trainer asks of CUDA and NCCL by name: gpu.cpp is in builds with a LibTorch that has
// them, no_gpu.cpp in the others, so that nothing else differs between the two.
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

/// GPUs that this process sees; 0 if none is, or this program is built without CUDA.
int count();

/// Makes GPU `index`, and a stream of its own on it, this thread's. A stream other than the default
/// one from the start, since steps can be recorded there only, and autograd remembers the stream
/// that a parameter was first used on.
void use(int index);

/// Connects the ranks with NCCL over this rank's current GPU. An operation that takes longer than
/// `timeout`, or a peer that is gone, ends in an exception in a thread of the group's: uncaught.h
/// tells what becomes of it.
c10::intrusive_ptr<CommunicationBackend> connect_nccl(const Meeting& meeting,
                                                      std::chrono::milliseconds timeout);

/// Records what `work` launches on this thread's GPU and stream, without doing it; the result does
/// all of it each time that it is called. Throws c10::Error if something cannot be recorded.
std::function<void()> record(const std::function<void()>& work);

}  // namespace dtool::trainer::gpu
