// SPDX-License-Identifier: MIT
// What the program of tests does in place of dtool-host, where the code under test starts itself
// with a word and arguments: `unit_tests WORD…`.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dtool::tests {

using OwnMain = std::function<int(const std::vector<std::string>& arguments)>;

inline std::map<std::string, OwnMain>& own_programs() {
  static std::map<std::string, OwnMain> programs;
  return programs;
}

/// A global object of a test's file. A word has one program, for all tests.
struct OwnProgram {
  OwnProgram(const std::string& word, int (*run)())
      : OwnProgram(word, [run](const auto& /*arguments*/) { return run(); }) {}
  OwnProgram(const std::string& word, OwnMain run) {
    if (!own_programs().emplace(word, std::move(run)).second) std::abort();
  }
};

}  // namespace dtool::tests
