// SPDX-License-Identifier: MIT
// Paths that mean a different folder on each machine: they contain `~` and environment variables.
#pragma once

#include <filesystem>
#include <string>

#include "trainer/settings/environment.h"

namespace dtool::trainer {

/// `text` with a leading `~` replaced by HOME and each `$NAME` or `${NAME}` by that variable. `$$`
/// gives one `$`. Throws UsageError naming `key` and the variable if it is unset or empty, so that
/// `$TMPDIR/data` never becomes `/data`.
std::filesystem::path expand_path(const std::string& key, const std::string& text,
                                  const Environment& environment);

}  // namespace dtool::trainer
