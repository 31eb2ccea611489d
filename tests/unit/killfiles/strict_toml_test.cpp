// SPDX-License-Identifier: MIT
// Tables that are read strictly.
#include "killfiles/strict_toml.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/fault.h"

namespace dtool::killfiles {
namespace {

using tests::fault_of;

StrictTable table(std::string_view text) {
  return StrictTable::parse(text, "f.toml");
}

TEST(StrictTable, GivesValuesOfTheirTypeAndNothingForAbsentKeys) {
  const StrictTable root = table(
      "a = \"x\"\nb = 3\nc = 1.5\nd = [\"p\", \"q\"]\n[e]\nf = \"y\"\n[[g]]\nh = 1\n[[g]]\nh = "
      "2\n");
  EXPECT_EQ(root.text("a"), "x");
  EXPECT_EQ(root.integer("b"), 3);
  EXPECT_EQ(root.number("b"), 3.0);
  EXPECT_EQ(root.number("c"), 1.5);
  EXPECT_EQ(root.texts("d"), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(root.table("e").value().text("f"), "y");
  EXPECT_EQ(root.tables("g").value().at(1).integer("h"), 2);
  EXPECT_FALSE(root.text("z") || root.integer("z") || root.number("z") || root.texts("z"));
  EXPECT_FALSE(root.table("z") || root.tables("z") || root.has("z"));
}

TEST(StrictTable, OutlivesTheTableItCameFrom) {
  const StrictTable inner = table("[a]\nb = \"x\"\n").table("a").value();
  EXPECT_EQ(inner.text("b"), "x");
}

std::string times(std::string_view part, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST(StrictTable, RefusesKeysAndValuesThatAreNestedTooDeep) {
  constexpr std::size_t kMany = 50'000;
  const std::string key = times("a.", kMany) + "a";
  for (const std::string& text :
       {key + " = 1\n", "[" + key + "]\n", "[[" + key + "]]\n", "x = {" + key + " = 1}\n",
        "x = " + times("[", kMany) + times("]", kMany) + "\n",
        "x = " + times("{a = ", kMany) + "1" + times("}", kMany) + "\n",
        "x = " + times("[{a.b = ", kMany) + "1" + times("}]", kMany) + "\n",
        times("'a'  .\t\"a\".", kMany) + "a = 1\n", R"(x = ["""q"""", {)" + key + " = 1}]\n"})
    EXPECT_NE(
        fault_of([&] { table("y = 1\n" + text); }).find("f.toml:2: it is nested more than 64"),
        std::string::npos)
        << text.substr(0, 100);
}

TEST(StrictTable, DotsAndBracketsInStringsAndListsAreNoDepth) {
  const std::string dots = times(".[{", 500);
  const StrictTable root =
      table("# " + dots + " '\na = \"" + dots + "\\\"\" # \"\"\"\nb = '" + dots + "'\nc = \"\"\"" +
            dots + "\"\n\\\"\"\"\"\nd = '''" + dots + "\n'''\ne = [" + times("1.5,\n", 500) +
            "]\nf = [" + times("{a.b = [1.5]},", 500) + "]\n");
  EXPECT_EQ(root.text("b"), dots);
  EXPECT_EQ(root.numbers("e").value().size(), 500U);
  EXPECT_EQ(root.tables("f").value().size(), 500U);
  EXPECT_EQ(table(times("a.", 64) + "a = 1\n").keys().size(), 1U);
  EXPECT_NE(fault_of([&] { table(times("a.", 65) + "a = 1\n"); }), "");
}

TEST(RequireShallow, CountsWhatIsOpen) {
  for (const std::string& text :
       {times("a = [{b.c = [1.5]}]\n", 100), times("]}", 100), times("[", 64), times("{", 64),
        times("a.", 64), "'" + times(".", 100) + "'" + times(".", 64)})
    EXPECT_NO_THROW(require_shallow(text, "f")) << text.substr(0, 50);
  for (const std::string& text : {times("[", 65), times("{", 65), times("a.", 65),
                                  times("]", 10) + times("[", 65), "'a'" + times(".", 65)})
    EXPECT_EQ(fault_of([&] { require_shallow(text, "f"); }), "f:1: it is nested more than 64 deep");
}

TEST(StrictTable, NamesLineAndColumnOfAWrongType) {
  const StrictTable root = table("a = 3\nb = \"x\"\n\n  c = [1]\nd = true\n[e]\nf = 1.5\n");
  EXPECT_EQ(fault_of([&] { root.text("a"); }),
            "f.toml:1:5: a must be a string, not a whole number");
  EXPECT_EQ(fault_of([&] { root.integer("b"); }),
            "f.toml:2:5: b must be a whole number, not a string");
  EXPECT_EQ(fault_of([&] { root.texts("c"); }),
            "f.toml:4:8: c must be a list of strings, and has a whole number");
  EXPECT_EQ(fault_of([&] { root.number("d"); }),
            "f.toml:5:5: d must be a number, not true or false");
  EXPECT_EQ(fault_of([&] { root.table("a"); }),
            "f.toml:1:5: a must be a table, not a whole number");
  EXPECT_EQ(fault_of([&] { root.tables("a"); }),
            "f.toml:1:5: a must be a list of tables, [[a]], not a whole number");
  EXPECT_EQ(fault_of([&] { root.table("e").value().integer("f"); }),
            "f.toml:7:5: e.f must be a whole number, not a number with a fraction");
}

TEST(StrictTable, SaysWhatItFoundInPlaceOfWhatItWanted) {
  for (const auto& [value, found] :
       std::vector<std::pair<std::string, std::string>>{{"'x'", "a string"},
                                                        {"1", "a whole number"},
                                                        {"1.5", "a number with a fraction"},
                                                        {"[1]", "a list"},
                                                        {"{a = 1}", "a table"},
                                                        {"2026-11-21", "a date or time"},
                                                        {"10:00:00", "a date or time"}}) {
    const StrictTable root = table("a = " + value);
    EXPECT_EQ(fault_of([&] { root.boolean("a"); }),
              "f.toml:1:5: a must be true or false, not " + found);
    EXPECT_EQ(root.holds_text("a"), found == "a string");
    EXPECT_EQ(root.is_list("a"), found == "a list");
  }
  const StrictTable root = table("a = true\n[\"b\\nc\"]\nd = [[1]]\n");
  EXPECT_EQ(root.boolean("a"), true);
  EXPECT_FALSE(root.holds_text("z") || root.is_list("z") || root.boolean("z"));
  EXPECT_EQ(root.keys(), (std::vector<std::string>{"a", "b\nc"}));
  const StrictTable inner = root.table("b\nc").value();
  EXPECT_EQ(fault_of([&] { inner.tables("d"); }),
            "f.toml:3:6: b c.d must be a list of tables, [[b c.d]], and has a list");
  EXPECT_EQ(fault_of([&] { inner.numbers("d"); }),
            "f.toml:3:6: b c.d must be a list of numbers, and has a list");
  EXPECT_EQ(fault_of([&] { root.numbers("a"); }),
            "f.toml:1:5: a must be a list of numbers, not true or false");
  EXPECT_EQ(fault_of([&] { inner.refuse("d", "no"); }), "f.toml:3:5: b c.d: no");
  EXPECT_EQ(inner.where("z"), "f.toml:2:1") << "the table that lacks it";
}

TEST(StrictTable, NamesTheFirstUnknownKeyOfTheFileAndTheNearestKnownOne) {
  const StrictTable root = table("known = 1\nzunknown = 2\nknwon = 3\n");
  EXPECT_EQ(fault_of([&] {
              root.require_known({"known", "zunknown"});
            }),
            "f.toml:3:1: unknown key 'knwon'\nhint: did you mean 'known'?");
  EXPECT_EQ(fault_of([&] { root.require_known({"known"}); }),
            "f.toml:2:1: unknown key 'zunknown'\nhint: known are known");
  EXPECT_EQ(fault_of([&] { root.require_known({"knwon", "known", "zunknown"}); }), "");
}

TEST(StrictTable, NamesTheLineOfTextThatIsNoToml) {
  EXPECT_EQ(fault_of([] { table("a = 1\nb = \n"); }).substr(0, 9), "f.toml:2:");
  EXPECT_EQ(fault_of([] { table("a = 1\na = 2\n"); }).substr(0, 17), "f.toml:2:5: error");
}

TEST(StrictTable, GivesListsOfNumbers) {
  const StrictTable root = table("a = [1, 2]\nb = [1, 2.5]\n");
  EXPECT_EQ(root.integers("a"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(root.numbers("b"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(fault_of([&] { root.integers("b"); }),
            "f.toml:2:9: b must be a list of whole numbers, and has a number with a fraction");
}

TEST(StrictTable, SaysThatAStringStandsInQuotes) {
  const auto is_hinted = [](std::string_view text) {
    return fault_of([&] { table(text); }).find("\nhint: a string stands in quotes") !=
           std::string::npos;
  };
  EXPECT_TRUE(is_hinted("a = 1\nb = h1,h2\n"));
  for (const std::string text : {"a = /etc/passwd", "a=x", "a =\t ~/x", "a = .x", "a = Z\n"})
    EXPECT_TRUE(is_hinted(text)) << text;
  for (const std::string text : {"a", "a\nb = x\n", "a = ", "a = \nb = x\n", "a= 1x", "a = -x"})
    EXPECT_FALSE(is_hinted(text)) << text;
  EXPECT_FALSE(is_hinted("a = 1\na = 2\n"));
  EXPECT_FALSE(is_hinted("a = \"x"));
}

TEST(StrictTable, SurvivesAnyText) {
  std::mt19937 random(13);
  for (int round = 0; round < 5000; ++round) {
    constexpr std::string_view kCharacters = "ab=[]{}\"'\n.,#1-T:\\\xc3\x80 \t";
    std::string text;
    for (unsigned length = random() % 30; length > 0; --length) {
      text += kCharacters[random() % kCharacters.size()];
    }
    fault_of([&] { table(text); });
  }
}

}  // namespace
}  // namespace dtool::killfiles
