// What hosts lack of a run's environment, from their answers to check.sh.
#pragma once

#include <vector>

#include "cli/run/check.h"
#include "ssh/script.h"

namespace dtool::cli {

/// Modules, an environment, an image, an engine or torchrun that is not there or does not work,
/// each with how to mend it.
std::vector<Lack> environment_lacks(const ssh::Answers& answers);

}  // namespace dtool::cli
