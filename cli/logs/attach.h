// SPDX-License-Identifier: MIT
// A program on a host that has this terminal, as `dtool attach` and `dtool ssh` show it.
#pragma once

#include <cstddef>
#include <string>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/fanout/terminal_link.h"

namespace dtool::cli {

/// Throws UsageError with the hint if standard input and output are not a terminal, or --json was
/// given.
void require_terminal(const Console& console, const std::string& command, const std::string& hint);

/// Runs `line` in the login shell of the link's host. This terminal is as it was before then, also
/// if the connection was lost. `on_interrupt`: as in ssh::Terminal.
ssh::HostResult show_in_terminal(Console& console, ssh::TerminalLink& link, const std::string& line,
                                 const std::string& on_interrupt);

/// The place of the only machine with that id or host. Throws UsageError if there is none, or if
/// there are several.
std::size_t find_machine(const killfiles::Killfile& killfile, const std::string& wanted);

}  // namespace dtool::cli
