// SPDX-License-Identifier: MIT
// The size of a policy's network, from an experiment's [model] table.
#pragma once

#include <cstdint>

namespace dtool::trainer {

struct NetworkSettings {
  std::int64_t embedding = 64;  ///< values of an encoded observation
  std::int64_t hidden = 128;    ///< values of the memory
};

}  // namespace dtool::trainer
