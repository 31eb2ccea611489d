// SPDX-License-Identifier: MIT
// Replaces a LibTorch header that Debian's package lacks but c10d/reducer.hpp includes. The reducer
// only names these two types; without the RPC framework it never makes a context. The build puts
// this folder on the include path only if the real header is missing.
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
