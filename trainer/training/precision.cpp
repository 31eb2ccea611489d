// SPDX-License-Identifier: MIT
// Makes the same calls as torch/amp/autocast_mode.py.
#include "trainer/training/precision.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace dtool::trainer {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool is_enabled(at::DeviceType device_type) {
  return at::autocast::is_autocast_enabled(device_type);
}

void enable_bfloat16(at::DeviceType device_type, bool enabled) {
  at::autocast::set_autocast_enabled(device_type, enabled);
  at::autocast::set_autocast_dtype(device_type, at::kBFloat16);
}
#else
// Before 2.4 each kind of device has functions of its own.
bool is_enabled(at::DeviceType device_type) {
  return device_type == at::kCUDA ? at::autocast::is_enabled() : at::autocast::is_cpu_enabled();
}

void enable_bfloat16(at::DeviceType device_type, bool enabled) {
  if (device_type == at::kCUDA) {
    at::autocast::set_enabled(enabled);
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
  } else {
    at::autocast::set_cpu_enabled(enabled);
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  }
}
#endif

}  // namespace

Autocast::Autocast(Precision precision, at::Device device)
    : active_(precision == Precision::bfloat16), device_type_(device.type()) {
  if (!active_) return;
  was_enabled_ = is_enabled(device_type_);
  enable_bfloat16(device_type_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!active_) return;
  // The copies of the parameters are of no use after the next step.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable_bfloat16(device_type_, was_enabled_);
}

}  // namespace dtool::trainer
