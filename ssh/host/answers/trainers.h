// SPDX-License-Identifier: MIT
// The trainers on this host: of the launcher, of the user, of the system, and the bundle that dtool
// sent: `~/.dtool/trainers/SHA256/dtool-trainer`, with its libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ssh/wire/check.h"

namespace dtool::host {

/// An environment that is ready: the variables are this process's, and these words stand before a
/// program.
using CommandPrefix = std::vector<std::string>;

/// Fills in the reply's words about the trainer: the first one that is of the wanted version and
/// has its libraries here, else the bundle if it is there, else the first one that was found.
void find_trainer(const CheckRequest& request, const CommandPrefix& inside, CheckReply& reply);

// The PyTorch of a host's environment, whose LibTorch a trainer bundle uses that has none. No code
// of it runs.

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
