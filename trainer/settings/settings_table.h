// SPDX-License-Identifier: MIT
// The table of settings that rank 0 prints before it trains.
#pragma once

#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

enum class Shown { given, all };

/// One line per setting, in columns. Of the defaults, which are marked, it has all or their number.
std::string settings_table(const std::vector<Setting>& settings, Shown shown);

}  // namespace dtool::trainer
