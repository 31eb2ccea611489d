// SPDX-License-Identifier: MIT
// The PyTorch of a host's environment, whose LibTorch a trainer bundle uses that has none. No code
// of it runs.
#pragma once

#include <string>
#include <string_view>

#include "ssh/host/answers/trainers.h"
#include "ssh/wire/check.h"

namespace dtool::host {

/// The variable that tells a bundle's dtool-trainer the folder of that PyTorch.
inline constexpr const char* kPyTorchVariable = "DTOOL_PYTORCH";

/// The version in the text of a `torch/version.py`: `2.11.0+cu130`. Empty if it names none, or one
/// that is no version.
std::string pytorch_version(std::string_view version_py);

/// Whether the loader can search folders below this one: it is absolute, and no sign of it has a
/// meaning in LD_LIBRARY_PATH.
bool can_be_searched(std::string_view folder);

/// The package `torch` that python3 (or python) of the environment would import; an empty folder if
/// it would find none.
PyTorch find_pytorch(const CommandPrefix& inside);

}  // namespace dtool::host
