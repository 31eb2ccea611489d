// SPDX-License-Identifier: MIT
// gpu.h in a build without CUDA: there are no GPUs, so the functions that use one are never called.
#include <stdexcept>

#include "trainer/ranks/gpu.h"

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
