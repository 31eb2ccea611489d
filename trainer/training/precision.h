// SPDX-License-Identifier: MIT
// The precision of the forward pass: float32 like the parameters, or bfloat16 where PyTorch's
// autocast considers it safe.
#pragma once

#include <c10/core/Device.h>

#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

/// While it lives, this thread's operations on `device` use `precision`. With bfloat16, matrix
/// products and convolutions get bfloat16 copies of their inputs, while sums, losses and the
/// parameters stay float32, as under torch.autocast. The backward pass follows the forward pass's
/// types and runs outside.
class Autocast {
 public:
  Autocast(Precision precision, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool active_;
  bool was_enabled_ = false;
  at::DeviceType device_type_;
};

}  // namespace dtool::trainer
