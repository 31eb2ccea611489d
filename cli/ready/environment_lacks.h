// SPDX-License-Identifier: MIT
// What hosts lack for a run's environment, from the answers of scripts/ready.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/ready/check.h"
#include "ssh/script.h"

namespace dtool::cli {

/// Modules, an environment, an image or an engine that is missing or does not work, each with a
/// hint at how to mend it; `needs` says whether a run will send some of it.
/// Variables of the log-in, `NAME=VALUE`, that do not count beside the environment that was named.
std::vector<std::string> left_out_variables(const ssh::Answers& answers);

std::vector<Lack> environment_lacks(const ssh::Answers& answers, std::string_view package_manager,
                                    const Needs& needs = {});

/// Why a login host could not look into the container that its nodes will enter; empty: it could,
/// or there is none.
std::string unseen_container(const ssh::Answers& answers);

}  // namespace dtool::cli
