// The [model] table of an experiment; read by experiment.cpp.
#pragma once

#include "trainer/settings/experiment.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

/// Reads the keys that a model of this workload has. Throws UsageError.
ModelSettings read_model(TomlReader& reader, WorkloadKind workload);

}  // namespace dtool::trainer
