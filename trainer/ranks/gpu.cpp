// SPDX-License-Identifier: MIT
// CUDA and NCCL need LibTorch 2.4 or later. In a build without them there are no GPUs, so the
// functions that use one are never called.
#include "trainer/ranks/gpu.h"

#ifdef DTOOL_TRAINER_NCCL

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainer/launch/network.h"

static_assert(TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4),
              "GPUs need LibTorch 2.4 or newer: configure with -DDTOOL_CUDA=OFF");

namespace dtool::trainer::gpu {
namespace {

/// The user's own setting wins.
void set_if_absent(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 0);
}

void choose_interface(const Meeting& meeting) {
  const auto interface = interface_of(reachable_address(meeting.me(), meeting.members));
  // With "=" the whole name has to match: "eth1" alone stands for eth10, too.
  if (!interface.empty()) set_if_absent("NCCL_SOCKET_IFNAME", "=" + interface);
}

/// At once, so that a mistake in the set-up shows before the data is loaded; while a step is being
/// recorded no connection could be made. A template: LibTorch from 2.4 on can.
template <class ProcessGroup>
void connect_now(ProcessGroup& group, at::Device device) {
  if constexpr (requires { group.eagerConnectSingleDevice(device); }) {
    group.setBoundDeviceId(device);
    group.eagerConnectSingleDevice(device);
  }
}

}  // namespace

int count() {
  return c10::cuda::device_count();
}

void use(int index) {
  const auto device = static_cast<c10::DeviceIndex>(index);
  c10::cuda::set_device(device);
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device));
}

c10::intrusive_ptr<CommunicationBackend> connect_nccl(const Meeting& meeting,
                                                      std::chrono::milliseconds timeout) {
  choose_interface(meeting);
  // 3: on an error NCCL's kernels, which would wait for a lost peer without end, are not waited
  // for; the thread that watches them throws. LibTorch's default too, but a run relies on it.
  set_if_absent("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3");
  // A warning for each message between two ranks, which are meant to wait for each other.
  set_if_absent("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "false");
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(meeting.store, meeting.place.rank,
                                                           meeting.place.world_size, options);
  connect_now(*group, {at::kCUDA, c10::cuda::current_device()});
  return group;
}

void prefer_cublas_lt() {
  at::globalContext().setBlasPreferredBackend(at::BlasBackend::Cublaslt);
}

std::function<void()> record(const std::function<void()>& work) {
  const auto graph = std::make_shared<at::cuda::CUDAGraph>();
  c10::cuda::device_synchronize();
  // Other threads, such as NCCL's watching one, may ask CUDA meanwhile what this one may not.
  graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    const auto problem = std::current_exception();
    try {
      graph->capture_end();  // the stream is of use again
    } catch (const std::exception&) {
      // A recording that went wrong says so once more here; the first word is the telling one.
    }
    std::rethrow_exception(problem);
  }
  graph->capture_end();
  return [graph] { graph->replay(); };
}

}  // namespace dtool::trainer::gpu

#else

#include <stdexcept>

namespace dtool::trainer::gpu {

int count() {
  return 0;
}

void use(int) {
  throw std::logic_error("this program is built without CUDA");
}

c10::intrusive_ptr<CommunicationBackend> connect_nccl(const Meeting&, std::chrono::milliseconds) {
  throw std::logic_error("this program is built without NCCL");
}

void prefer_cublas_lt() {
  throw std::logic_error("this program is built without CUDA");
}

std::function<void()> record(const std::function<void()>&) {
  throw std::logic_error("this program is built without CUDA");
}

}  // namespace dtool::trainer::gpu

#endif
