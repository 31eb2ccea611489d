// SPDX-License-Identifier: MIT
// Texts that are larger than memory stand in the one document of --json as if they were not.
#include "cli/large_texts.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/console.h"

namespace dtool::cli {
namespace {

/// The standard output that a document with the text makes.
std::string printed(const std::string& text, std::size_t step) {
  LargeTexts texts(2);
  for (std::size_t at = 0; at < text.size(); at += step) {
    texts.add(1, text.substr(at, step));
    texts.add(0, "x");
  }
  EXPECT_EQ(texts.size(1), text.size());
  Console console;
  testing::internal::CaptureStdout();
  console.document({{"a", 1}, {"first", texts.mark(0)}, {"log", texts.mark(1)}}, texts);
  return testing::internal::GetCapturedStdout();
}

std::string whole(const std::string& text, std::size_t step) {
  Console console;
  const std::string first((text.size() + step - 1) / step, 'x');
  testing::internal::CaptureStdout();
  console.document({{"a", 1}, {"first", first}, {"log", text}});
  return testing::internal::GetCapturedStdout();
}

TEST(LargeTexts, MakeTheDocumentThatSmallOnesMake) {
  for (const std::string& text :
       {std::string(), std::string("one line\n"), std::string(200'000, 'a'),
        std::string(300'000, '\xbf'), std::string(1000, '\0') + "\x7f\x1b[2J\"\\"})
    EXPECT_EQ(printed(text, 1000), whole(text, 1000)) << text.substr(0, 20);
}

RC_GTEST_PROP(LargeTexts, CharactersOverTheEdgesOfPiecesStayWhole, ()) {
  const auto part = rc::gen::element<std::string>(
      "a", "\xc3\xa4", "\xe2\x80\xae", "\xf0\x9f\x98\x80", "\xff", "\xe2\x80", "\xf0\x9f", "\xc3",
      "\xa4\xa4", "\xed\xa0\x80", "\n", "\"");
  std::string some;
  for (const std::string& each : *rc::gen::container<std::vector<std::string>>(part)) some += each;
  std::string text(static_cast<std::size_t>(*rc::gen::inRange(0, 9)), 'x');
  while (!some.empty() && text.size() < 150'000) text += some;
  const auto step = *rc::gen::element<std::size_t>(1'001, 65'535, 65'537, 77'777);
  RC_ASSERT(printed(text, step) == whole(text, step));
}

TEST(LargeTexts, TheMarkOfOneIsNotFoundInTheOther) {
  const LargeTexts one(12);
  const LargeTexts other(12);
  EXPECT_FALSE(other.find_mark(one.mark(11)));
  EXPECT_FALSE(LargeTexts().find_mark(one.mark(0)));
  EXPECT_EQ(one.find_mark("x" + one.mark(11) + "\"").value().text, 11U);
}

}  // namespace
}  // namespace dtool::cli
