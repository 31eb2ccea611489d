// The [schedule] table of an experiment; read by experiment.cpp.
#pragma once

#include <vector>

#include "trainer/settings/experiment.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

/// Reads the keys that the chosen kind has; `stages` tell how long the run is where
/// `schedule.length` does not. Throws UsageError.
ScheduleSettings read_schedule(TomlReader& reader, const std::vector<Stage>& stages);

}  // namespace dtool::trainer
