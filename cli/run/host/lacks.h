// What a host lacks of the programs that dtool's scripts use.
#pragma once

#include "ssh/host/protocol.h"

namespace dtool::host {

/// Whether screen is only looked for, or also tried.
enum class Screen { found, tried };

/// Whether scripts run there beside the run's own.
enum class Scripts { none, some };

ProgramLacks find_lacks(const Wants& wants, Screen screen, Scripts scripts);

/// The first number of the kind 5.2 or 5.2.15 in the first MiB that a program prints with
/// --version; empty where it is missing or prints none.
std::string version_of(const std::string& program);

}  // namespace dtool::host
