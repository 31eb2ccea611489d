// SPDX-License-Identifier: MIT
// AllenAct's killfiles, `~/.allenact/*.killfile`, which its dmain.py writes line by line while it
// starts machines.
#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "killfiles/killfile.h"

namespace dtool::killfiles {

Killfile parse_allenact(std::string_view text, const std::string& name) {
  Killfile killfile;
  killfile.what = "allenact";
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    ++number;
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      // `screen -S` takes any session whose name begins with its argument, so a truncated name must
      // not reach it.
      throw std::invalid_argument(
          fmt::format("{}:{}: the line has no end\nhint: the file was cut short; add the line end "
                      "if its last name is whole",
                      name, number));
    }
    std::istringstream words(std::string(text.substr(begin, end - begin)));
    begin = end + 1;
    Machine machine;
    std::string more;
    if (!(words >> machine.host)) continue;
    if (!(words >> machine.session) || words >> more) {
      throw std::invalid_argument(
          fmt::format("{}:{}: the line is not of the form 'IP screen_name'", name, number));
    }
    machine.id = static_cast<int>(killfile.machines.size());
    killfile.machines.push_back(std::move(machine));
  }
  if (killfile.machines.empty()) {
    throw std::invalid_argument(fmt::format("{}:1: no machine is named", name));
  }
  return killfile;
}

}  // namespace dtool::killfiles
