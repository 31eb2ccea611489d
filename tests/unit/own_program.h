// SPDX-License-Identifier: MIT
// What the program of tests does in place of dtool-host, where the code under test starts itself
// with a word: `unit_tests WORD`, and with more words behind it.
#pragma once

#include <map>
#include <string>

namespace dtool::tests {

inline std::map<std::string, int (*)()>& own_programs() {
  static std::map<std::string, int (*)()> programs;
  return programs;
}

/// A global object of a test's file.
struct OwnProgram {
  OwnProgram(const std::string& word, int (*run)()) { own_programs()[word] = run; }
};

}  // namespace dtool::tests
