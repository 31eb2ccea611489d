// SPDX-License-Identifier: MIT
// What the user may have meant.
#include "killfiles/nearest.h"

#include <gtest/gtest.h>

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

TEST(NearestBeginning, IsOfAWholeIdOrOfItsBeginning) {
  const std::vector<std::string> ids = {"mnist_20261121-034512-3fa91c",
                                        "digits_20261121-034512-3fa91c"};
  EXPECT_EQ(nearest_beginning("mnist_20261121-034512-3fa91d", ids), ids[0]);
  EXPECT_EQ(nearest_beginning("minst", ids), ids[0]);
  EXPECT_EQ(nearest_beginning("digist_2026", ids), ids[1]);
  EXPECT_EQ(nearest_beginning("mni", ids), std::nullopt);
  EXPECT_EQ(nearest_beginning("regression", ids), std::nullopt);
  EXPECT_EQ(nearest_beginning("mnist", {}), std::nullopt);
}

TEST(HintAt, AsksOrListsWhatIsKnown) {
  EXPECT_EQ(hint_at("shs", kKeys), "\nhint: did you mean 'ssh'?");
  EXPECT_EQ(hint_at("hosts", {"a", "b"}), "\nhint: known are a, b");
  EXPECT_EQ(hint_at("hosts", {}), "");
}

}  // namespace
}  // namespace dtool::killfiles
