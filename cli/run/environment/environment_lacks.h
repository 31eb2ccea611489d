// What hosts lack of a run's environment, from the answers of scripts/ready.sh.
#pragma once

#include <string_view>
#include <vector>

#include "cli/run/check.h"
#include "ssh/script.h"

namespace dtool::cli {

/// Modules, an environment, an image or an engine that is not there or does not work, each with how
/// to mend it.
std::vector<Lack> environment_lacks(const ssh::Answers& answers, std::string_view package_manager);

}  // namespace dtool::cli
