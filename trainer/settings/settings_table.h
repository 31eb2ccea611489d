// SPDX-License-Identifier: MIT
// The table of settings that rank 0 prints before it trains.
#pragma once

#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

/// One line per setting, in columns; defaults are marked.
std::string settings_table(const std::vector<Setting>& settings);

}  // namespace dtool::trainer
