// SPDX-License-Identifier: MIT
// The [schedule] table of an experiment; for workloads that learn from samples.
#pragma once

#include <vector>

#include "trainer/settings/schedule.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

/// Reads the keys of the chosen kind. If `schedule.length` is missing, `stages` give the length of
/// the run. Throws UsageError.
ScheduleSettings read_schedule(TomlReader& reader, const std::vector<Stage>& stages);

}  // namespace dtool::trainer
