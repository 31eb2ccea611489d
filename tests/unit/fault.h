// SPDX-License-Identifier: MIT
// The message of the std::invalid_argument that a call throws; for tests of bad input.
#pragma once

#include <stdexcept>
#include <string>

namespace dtool::tests {

/// Empty where nothing was thrown; other exceptions pass through and fail the test.
template <typename Call>
std::string fault_of(Call&& call) {
  try {
    call();
  } catch (const std::invalid_argument& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace dtool::tests
