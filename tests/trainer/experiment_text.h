// SPDX-License-Identifier: MIT
// Experiments that a test writes as text, and the mistakes in them.
#pragma once

#include <functional>
#include <regex>
#include <string>

#include "tests/unit/temporary_folder.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

/// Reads `text` from a file NAME that no other test, which may run beside, has.
inline Experiment experiment_of(const std::string& text, const std::string& name) {
  const tests::TemporaryFolder folder;
  return read_experiment(folder.write(name, text));
}

/// `:LINE: fault` of a mistake in such a file; its column is the reader's own test's.
inline std::string line_and_fault(const UsageError& mistake) {
  const std::string what = mistake.what();
  static const std::regex kColumn("^(:[0-9]+):[0-9]+:");
  return std::regex_replace(what.substr(what.find(".toml") + 5), kColumn, "$1:");
}

/// `fault / hint` of the mistake that `work` meets, or "none".
inline std::string mistake_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const UsageError& mistake) {
    return std::string(mistake.what()) + " / " + mistake.hint;
  }
  return "none";
}

}  // namespace dtool::trainer
