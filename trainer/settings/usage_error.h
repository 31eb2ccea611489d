// SPDX-License-Identifier: MIT
// The one exception for a mistake that the user can correct: a flag, an experiment, a data file.
#pragma once

#include <stdexcept>
#include <string>

namespace dtool::trainer {

/// A mistake in the trainer's input. `what()` is one line that names the thing and its value;
/// `hint` says how to mend it, or is empty. The process ends with exit code 2.
struct UsageError : std::runtime_error {
  explicit UsageError(const std::string& message, std::string hint_text = "")
      : std::runtime_error(message), hint(std::move(hint_text)) {}
  std::string hint;
};

}  // namespace dtool::trainer
