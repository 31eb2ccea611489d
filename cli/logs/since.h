// SPDX-License-Identifier: MIT
// The value of `dtool logs --since`: a length of time, or a point in time.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

namespace dtool::cli {

/// How long ago `30s`, `10m`, `2h`, `3d`, `2026-11-25`, `2026-11-25T14:30`, `14:30:05` (today) and
/// the like was at the time `now`; local times, or UTC with a `Z` behind. Nothing if the text is
/// none of these, or lies in the future.
std::optional<std::chrono::seconds> parse_since(const std::string& text, std::time_t now);

/// As a check of cli/options.h.
std::string must_be_since(const std::string& text);

}  // namespace dtool::cli
