// SPDX-License-Identifier: MIT
// What the user may have meant.
#include "killfiles/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/unit/temporary_folder.h"

namespace dtool::killfiles {
namespace {

const std::vector<std::string> kKeys = {"runs_on", "groups", "ssh", "run", "environment"};

TEST(Nearest, FindsAWordWithOneSlipOfTheFinger) {
  EXPECT_EQ(nearest("run_on", kKeys), "runs_on");
  EXPECT_EQ(nearest("runs_onn", kKeys), "runs_on");
  EXPECT_EQ(nearest("runs-on", kKeys), "runs_on");
  EXPECT_EQ(nearest("urns_on", kKeys), "runs_on");
  EXPECT_EQ(nearest("shs", kKeys), "ssh");
}

TEST(Nearest, TakesTheNearestAndTheFirstOfEquals) {
  EXPECT_EQ(nearest("rum", {"rub", "run", "rum1"}), "rub");
  EXPECT_EQ(nearest("run", {"runs", "run"}), "run");
}

TEST(Nearest, IsNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("hosts", kKeys), std::nullopt);
  EXPECT_EQ(nearest("", {"ab"}), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'x'), {std::string(100'001, 'x')}), std::nullopt);
}

/// How many slips are between the words: the fewest that nearest() takes, which allows one for
/// three letters.
std::size_t slips(const std::string& word, const std::string& candidate) {
  std::size_t allowed = std::max<std::size_t>(1, (word.size() + 2) / 3);
  for (; allowed < 20; ++allowed) {
    const std::string more(3 * allowed - word.size(), 'z');
    if (nearest(more + word, {more + candidate})) break;
  }
  return allowed;
}

TEST(Nearest, CountsLettersAddedLeftOutChangedAndSwapped) {
  for (const auto& [word, candidate, expected] :
       std::vector<std::tuple<std::string, std::string, std::size_t>>{
           {"", "a", 1},
           {"", "abcd", 4},
           {"abc", "ab", 1},
           {"ab", "ba", 1},
           {"abc", "acb", 1},
           {"abcd", "badc", 2},
           {"ca", "abc", 3},  // what was swapped is not changed again
           {"kitten", "sitting", 3},
           {"sunday", "saturday", 3},
           {"abcdef", "ghijkl", 6},
           {"abcdef", "bcdefa", 2},
           {"aabb", "bbaa", 3},
           {"abab", "baba", 2}}) {
    EXPECT_EQ(slips(word, candidate), expected) << word << " " << candidate;
  }
  EXPECT_EQ(nearest("ba", {"ab"}), "ab");
}

TEST(Nearest, LooksAtNothingBeforeTheWord) {
  EXPECT_EQ(nearest(std::string_view("xa").substr(1), {"bax"}), std::nullopt);
}

TEST(Nearest, AllowsASlipAndOneForEveryThreeLetters) {
  for (const auto& [length, allowed] : std::vector<std::pair<std::size_t, std::size_t>>{
           {1, 1}, {5, 1}, {6, 2}, {8, 2}, {9, 3}, {100, 33}}) {
    const std::string word(length, 'x');
    EXPECT_TRUE(nearest(word, {word + std::string(allowed, 'y')})) << length;
    EXPECT_FALSE(nearest(word, {word + std::string(allowed + 1, 'y')})) << length;
  }
  EXPECT_FALSE(nearest(std::string(101, 'x'), {std::string(101, 'x')})) << "no word is so long";
}

TEST(NearestBeginning, IsOfAWholeIdOrOfItsBeginning) {
  const std::vector<std::string> ids = {"mnist_20261121-034512-3fa91c",
                                        "digits_20261121-034512-3fa91c"};
  EXPECT_EQ(nearest_beginning("mnist_20261121-034512-3fa91d", ids), ids[0]);
  EXPECT_EQ(nearest_beginning("minst", ids), ids[0]);
  EXPECT_EQ(nearest_beginning("digist_2026", ids), ids[1]);
  EXPECT_EQ(nearest_beginning("mnsi", ids), ids[0]);
  EXPECT_EQ(nearest_beginning("mni", ids), std::nullopt);
  EXPECT_EQ(nearest_beginning("regression", ids), std::nullopt);
  EXPECT_EQ(nearest_beginning("mnist", {}), std::nullopt);
}

TEST(HintAt, AsksOrListsWhatIsKnown) {
  EXPECT_EQ(hint_at("shs", kKeys), "\nhint: did you mean 'ssh'?");
  EXPECT_EQ(hint_at("hosts", {"a", "b"}), "\nhint: known are a, b");
  EXPECT_EQ(hint_at("hosts", {}), "");
}

TEST(NearestFile, IsTheNearestNameOfItsFolder) {
  const tests::TemporaryFolder folder;
  folder.write("train.toml", "");
  folder.write("trial.toml", "");
  EXPECT_EQ(nearest_file(folder.path() / "trian.toml"),
            "did you mean " + (folder.path() / "train.toml").string() + "?");
  EXPECT_EQ(nearest_file(folder.path() / "other"), "");
  EXPECT_EQ(nearest_file(folder.path() / "none" / "train.toml"), "");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string here = nearest_file("tran.toml");
  std::filesystem::current_path(before);
  EXPECT_EQ(here, "did you mean train.toml?");
}

}  // namespace
}  // namespace dtool::killfiles
