// Paths that name a different folder on each machine: `~` and environment variables in them.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/launch/environment.h"

namespace dtool::trainer {

/// `text` with a leading `~` replaced by HOME and each `$NAME` or `${NAME}` by that variable. `$$`
/// is one `$`. Throws UsageError naming `key` and the variable when it is not set or is empty, so
/// that `$TMPDIR/data` never means `/data`.
std::filesystem::path expand_path(const std::string& key, const std::string& text,
                                  const Environment& environment);

}  // namespace dtool::trainer
