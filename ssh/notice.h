// A line for the user about what dtool waits for while hosts are reached: the folder has no
// terminal of its own, and no caller to hand it to.
#pragma once

#include <functional>
#include <string_view>

namespace dtool::ssh {

/// Where such lines go from now on; nowhere until this is called.
void give_notices_to(std::function<void(std::string_view)> taker);

/// Called from the event loop.
void notice(std::string_view line);

}  // namespace dtool::ssh
