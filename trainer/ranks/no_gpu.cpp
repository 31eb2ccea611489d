// gpu.h in a build without CUDA: there are no GPUs, and nobody comes so far as to use one.
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

std::function<void()> record(const std::function<void()>&) {
  throw std::logic_error("this program is built without CUDA");
}

}  // namespace dtool::trainer::gpu
