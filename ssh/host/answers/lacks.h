// SPDX-License-Identifier: MIT
// What a host lacks of the programs that dtool's scripts use.
#pragma once

#include <string>
#include <string_view>

#include "ssh/wire/check.h"

namespace dtool::host {

/// Whether screen is only looked for, or also tried.
enum class Screen { found, tried };

/// Whether scripts run there beside the run's own.
enum class Scripts { none, some };

ProgramLacks find_lacks(const Wants& wants, Screen screen, Scripts scripts);

/// The value of a name in /etc/os-release, without quotes; empty if it is missing.
std::string os_release(std::string_view name);

/// The same in a text of that file.
std::string value_of_release(std::string_view release, std::string_view name);

/// The host's package manager: the one of the system's own kind, else the first that is there;
/// empty if there is none. `kinds`: ID and ID_LIKE of /etc/os-release.
std::string find_package_manager(std::string_view kinds);

/// The first number like 5.2 or 5.2.15 in the first MiB of a program's --version output; empty if
/// the program is missing or prints none.
std::string version_of(const std::string& program);

}  // namespace dtool::host
