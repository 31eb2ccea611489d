// A machine's status out of what its host answered, for tests of status and of causes.
#pragma once

#include <sstream>
#include <string>

#include "cli/watch/status_script.h"
#include "tests/unit/fake_remote.h"

namespace dtool::tests {

inline killfiles::Machine recorded_machine(int id) {
  killfiles::Machine made;
  made.id = id;
  made.state_folder = "~/.dtool/runs/x_1/machine0";
  made.log = "~/it's a log";
  return made;
}

/// Of the machine `id` on the host after that number; one `NAME=VALUE` a line.
inline cli::MachineStatus read_status(const std::string& answers, int id = 0) {
  std::string out;
  std::istringstream lines(answers + "\nlooked=yes");
  for (std::string line; std::getline(lines, line);) out += "dtool-answer " + line + "\n";
  return cli::read_statuses(
             {{"x_1", recorded_machine(id)}},
             from("h" + std::to_string(id + 1), answered("dtool-answer part=0\n" + out)))
      .front();
}

}  // namespace dtool::tests
