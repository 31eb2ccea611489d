#include "trainer/launch/own_pause.h"

#include <gtest/gtest.h>

namespace dtool::trainer {
namespace {

using std::chrono::seconds;

TEST(OwnPause, CountsWhatIsMoreThanUsual) {
  OwnPause pause(seconds(2));
  const auto begin = OwnPause::Clock::now();
  pause.take(begin);
  EXPECT_EQ(pause.take(begin + seconds(2)), seconds(0));
  EXPECT_EQ(pause.take(begin + seconds(9)), seconds(5));
  EXPECT_EQ(pause.take(begin + seconds(10)), seconds(0)) << "once";
}

}  // namespace
}  // namespace dtool::trainer
