// SPDX-License-Identifier: MIT
// The unit tests' main: each program of tests is its own remote shell, `unit_tests remote_shell
// HOST COMMAND…`, as dtool is its own, and what own_program.h says.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ssh/fanout/fleet.h"
#include "tests/unit/own_program.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "remote_shell") {
    return dtool::ssh::remote_shell(std::vector<std::string>(argv + 2, argv + argc));
  }
  if (argc > 1 && dtool::tests::own_programs().contains(argv[1]))
    return dtool::tests::own_programs()[argv[1]](std::vector<std::string>(argv + 2, argv + argc));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
