// SPDX-License-Identifier: MIT
// A log-in shell's own words are told apart from a command's, however the bytes are cut.
#include "ssh/session/exchange.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/syntax.h"

namespace dtool::ssh {
namespace {

std::string commands_part(const std::string& output, std::size_t piece) {
  LoginOutput shell;
  std::string part;
  for (std::size_t at = 0; at < output.size(); at += piece)
    part += shell.commands_part(output.substr(at, piece));
  return part;
}

TEST(LoginOutput, OnlyWhatComesBehindTheMarkIsTheCommands) {
  const std::string marked = tests::output_of(behind_mark("echo one; echo two"));
  for (const std::string before : {"", "welcome\n", "no line end", "dtool-command-", "\n\n"}) {
    const std::string output = before + marked;
    for (std::size_t piece = 1; piece <= output.size(); ++piece)
      EXPECT_EQ(commands_part(output, piece), "one\ntwo\n") << before << " in pieces of " << piece;
  }
}

TEST(LoginOutput, TheCommandMayPrintTheMarkItself) {
  const std::string marked = tests::output_of(behind_mark("echo dtool-command-begins; echo end"));
  EXPECT_EQ(commands_part(marked, 1000), "dtool-command-begins\nend\n");
  EXPECT_EQ(commands_part(marked, 1), "dtool-command-begins\nend\n");
}

TEST(LoginOutput, WithoutTheMarkNothingIsTheCommands) {
  EXPECT_EQ(commands_part(std::string(100'000, 'x'), 1000), "");
}

TEST(LoginOutput, TheCommandsExitCodeStays) {
  EXPECT_EQ(tests::output_of(behind_mark("exit 3")), "dtool-command-begins\nexit code 3\n");
}

}  // namespace
}  // namespace dtool::ssh
