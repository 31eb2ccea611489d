// Stands in for a LibTorch header that Debian's package leaves out and c10d/reducer.hpp includes.
// The reducer only names these two types and, without the RPC framework running, never makes a
// context; the build puts this folder on the include path only where the real header is absent.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(at::Tensor&)>;
};

using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd
