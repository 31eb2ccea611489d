// What the forward pass computes in: float32 as the parameters are, or bfloat16 where PyTorch's
// autocast holds that to be safe.
#pragma once

#include <c10/core/Device.h>

#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

/// While it lives, this thread's operations on `device` take `precision`: with bfloat16, matrix
/// products and convolutions get bfloat16 copies of what they are given, while sums, losses and
/// the parameters themselves stay float32, as under torch.autocast. The backward pass follows the
/// forward pass and runs outside.
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
