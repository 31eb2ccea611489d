// SPDX-License-Identifier: MIT
// Wraps getenv, which returns a null pointer for a missing variable.
#include "trainer/settings/environment.h"

#include <cstdlib>

namespace dtool::trainer {

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace dtool::trainer
