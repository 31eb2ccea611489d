// Experiments that a test writes as text.
#pragma once

#include <string>

#include "tests/unit/temporary_folder.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// Reads `text` from a file NAME that no other test, which may run beside, has.
inline Experiment experiment_of(const std::string& text, const std::string& name) {
  const tests::TemporaryFolder folder;
  return read_experiment(folder.write(name, text));
}

}  // namespace dtool::trainer
