// SPDX-License-Identifier: MIT
// What a host lacks of the programs that dtool's scripts use.
#pragma once

#include <string>
#include <string_view>

#include "ssh/host/messages/check.h"

namespace dtool::host {

/// Whether screen is only looked for, or also tried.
enum class Screen { found, tried };

/// Whether scripts run there beside the run's own.
enum class Scripts { none, some };

ProgramLacks find_lacks(const Wants& wants, Screen screen, Scripts scripts);

/// The value of a name in /etc/os-release, without quotes; empty if it is missing.
std::string os_release(std::string_view name);

/// The first number like 5.2 or 5.2.15 in the first MiB of a program's --version output; empty if
/// the program is missing or prints none.
std::string version_of(const std::string& program);

}  // namespace dtool::host
