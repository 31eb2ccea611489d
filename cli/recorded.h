// Finding recorded runs, for the commands that act on them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "killfiles/killfile.h"

namespace dtool::cli {

/// ~/.dtool/killfiles: where runs are recorded.
std::filesystem::path killfile_folder();

/// The run named by id or prefix; the newest where `id` is empty. Throws UsageError where there is
/// none, where several match, or where its file cannot be read.
killfiles::Killfile recorded_run(const std::string& id);

}  // namespace dtool::cli
