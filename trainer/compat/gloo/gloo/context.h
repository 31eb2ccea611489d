// SPDX-License-Identifier: MIT
// A PyTorch that pip installed has gloo inside libtorch_cpu, but not gloo's headers. This folder
// declares the little of gloo that c10d/ProcessGroupGloo.hpp names, and the build puts it on the
// include path only if the real headers are missing. LibTorch makes all objects of these classes
// and keeps them behind pointers, so nothing here depends on how gloo lays them out.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class UnboundBuffer;
}

}  // namespace gloo
