// SPDX-License-Identifier: MIT
// Stands in for gloo's header. See context.h.
#pragma once

namespace gloo::transport {

class Device;

}  // namespace gloo::transport
