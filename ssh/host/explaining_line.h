// SPDX-License-Identifier: MIT
// Which line at the end of a program's output says why it ended. What follows that line (rules,
// warnings, a launcher's summary) is passed over.
#pragma once

#include <string>
#include <string_view>

namespace dtool::host {

/// The last line that explains something, cut at 500 bytes; without one, the last that is not
/// blank; or an empty text. Lines of dtool's own are to be left out before.
std::string explaining_line(std::string_view text);

/// `ValueError: …`, `torch.OutOfMemoryError: …`, `KeyboardInterrupt`
bool is_exception(std::string_view line);

/// Whether the line says that another process is gone (`Connection closed by peer`), so that the
/// cause is to be found there.
bool marks_a_victim(std::string_view line);

}  // namespace dtool::host
