// Experiments that a test writes as text.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// Reads `text` from a file NAME that no other test, which may run beside, has.
inline Experiment experiment_of(const std::string& text, const std::string& name) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("experiment_of_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  struct Remove {
    const std::filesystem::path& folder;
    ~Remove() { std::filesystem::remove_all(folder); }
  } const remove{folder};
  std::ofstream(folder / name) << text;
  return read_experiment(folder / name);
}

}  // namespace dtool::trainer
