// SPDX-License-Identifier: MIT
// A typed line is cut where a shell would cut it.
#include "ssh/quote.h"

#include <gtest/gtest.h>

#include "tests/unit/fault.h"

namespace dtool::ssh {
namespace {

using Words = std::vector<std::string>;

TEST(ShellWords, ArePartedByBlanks) {
  EXPECT_EQ(split_shell_words("ssh -i key\t-p\n22"), (Words{"ssh", "-i", "key", "-p", "22"}));
  EXPECT_EQ(split_shell_words("  a  "), (Words{"a"}));
  EXPECT_EQ(split_shell_words(""), Words{});
  EXPECT_EQ(split_shell_words(" \t\n"), Words{});
}

TEST(ShellWords, AreKeptTogetherByQuotesAndBackslashes) {
  EXPECT_EQ(split_shell_words(R"('a b' "c d" e\ f)"), (Words{"a b", "c d", "e f"}));
  EXPECT_EQ(split_shell_words(R"(a'b c'd"e f"g)"), (Words{"ab cde fg"}));
  EXPECT_EQ(split_shell_words(R"('' "")"), (Words{"", ""}));
  EXPECT_EQ(split_shell_words(R"("it's" 'say "hi"')"), (Words{"it's", "say \"hi\""}));
}

TEST(ShellWords, ABackslashInDoubleQuotesStaysBeforeAnOrdinaryCharacter) {
  EXPECT_EQ(split_shell_words(R"("a\b" "a\\b" "a\"b" "a\$b" "a\`b" 'a\b' a\b)"),
            (Words{"a\\b", "a\\b", "a\"b", "a$b", "a`b", "a\\b", "ab"}));
}

TEST(ShellWords, ABackslashBeforeALineEndJoinsTheLines) {
  EXPECT_EQ(split_shell_words("a\\\nb \"c\\\nd\" 'e\\\nf'"), (Words{"ab", "cd", "e\\\nf"}));
}

TEST(ShellWords, ALoneBackslashAtTheEndStays) {
  EXPECT_EQ(split_shell_words("a\\"), (Words{"a\\"}));
}

TEST(ShellWords, NothingIsExpanded) {
  EXPECT_EQ(split_shell_words("~/key $HOME *.c user@{addr}"),
            (Words{"~/key", "$HOME", "*.c", "user@{addr}"}));
}

TEST(ShellWords, AQuoteThatDoesNotEndIsRefused) {
  EXPECT_EQ(tests::fault_of([] { split_shell_words("ssh -i 'my key"); }),
            "a quote does not end in: ssh -i 'my key");
  EXPECT_EQ(tests::fault_of([] { split_shell_words("a\"\\\""); }),
            "a quote does not end in: a\"\\\"");
}

TEST(ShellWords, ReadBackWhatWasQuoted) {
  const Words words = {"", " ", "a b", "it's", "\"", "\\", "\\\\", "$x", "a\nb", "-n", "ü"};
  EXPECT_EQ(split_shell_words(ssh::quote_all(words)), words);
}

}  // namespace
}  // namespace dtool::ssh
