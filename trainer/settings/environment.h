// SPDX-License-Identifier: MIT
// Environment variables behind a seam, so that tests can supply their own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace dtool::trainer {

/// Looks up an environment variable.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// The real environment.
std::optional<std::string> process_environment(const std::string& name);

}  // namespace dtool::trainer
