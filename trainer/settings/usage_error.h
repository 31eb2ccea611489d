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

/// What `read` returns; the message of a UsageError that it throws begins with `place`.
template <class Read>
auto with_place(const std::string& place, Read read) {
  try {
    return read();
  } catch (const UsageError& mistake) {
    throw UsageError(place + ": " + mistake.what(), mistake.hint);
  }
}

}  // namespace dtool::trainer
