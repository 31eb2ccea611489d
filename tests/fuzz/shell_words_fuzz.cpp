// SPDX-License-Identifier: MIT
// Typed lines of any form are cut into words or refused; words are the same after quoting and
// cutting again, and those that bash sees where nothing would be expanded.
#include <gtest/gtest.h>

#include "ssh/quote.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/syntax.h"

namespace dtool::fuzz {
namespace {

const std::vector<std::string> kSeeds = {"ssh -i key -p 22 user@{addr}", "a 'b c' \"d e\" f\\ g",
                                         "\"it's\" 'say \"x\"' \\\\", "x\\\ny ''"};

TEST(Fuzz, WordsAreCutAgainAsTheyWere) {
  Mutator mutator(kSeeds, {"'", "\"", "\\", " ", "\n", "\t", "$x", "`", "''", "\\\\"});
  const Tally tally = feed<std::invalid_argument>(mutator, 20'000, [](const std::string& text) {
    const std::vector<std::string> words = ssh::split_shell_words(text);
    for (const std::string& word : words) {
      if (word.find('\0') != std::string::npos) return;  // no shell takes it
    }
    EXPECT_EQ(ssh::split_shell_words(ssh::quote_all(words)), words) << text;
  });
  EXPECT_GT(tally.taken, 1000);
  EXPECT_GT(tally.refused, 1000);
}

TEST(Fuzz, WordsAreThoseOfBash) {
  Mutator mutator({"a 'b c' d", "\"e f\" g\\ h", "''"},
                  {"'", "\"", "\\", " ", "\\\\", "b", "\\b", "\\\""});
  std::string script;
  std::string expected;
  feed<std::invalid_argument>(mutator, 2'000, [&](const std::string& text) {
    const auto is_plain = [](char each) {
      return std::string_view("abcdefgh'\"\\ ").find(each) != std::string_view::npos;
    };
    if (!std::ranges::all_of(text, is_plain) || text.ends_with('\\')) return;
    for (const std::string& word : ssh::split_shell_words(text)) expected += "<" + word + ">";
    expected += "\n";
    script += "set -- " + text + "\nfor word; do printf '<%s>' \"$word\"; done; echo\n";
  });
  EXPECT_GT(expected.size(), 1000U);
  EXPECT_EQ(tests::run_bash(script), expected);
}

}  // namespace
}  // namespace dtool::fuzz
