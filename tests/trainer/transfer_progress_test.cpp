// SPDX-License-Identifier: MIT
// What is told of a transfer.
#include "trainer/data/download.h"

#include <gtest/gtest.h>

using namespace dtool::trainer;
using std::chrono::seconds;

TEST(TransferProgress, BytesAreWrittenForPeople) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(999), "999 bytes");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(9'630'610), "9.6 MB");
  EXPECT_EQ(human_bytes(999'949), "999.9 kB");
  EXPECT_EQ(human_bytes(999'950), "1.0 MB");
  EXPECT_EQ(human_bytes(999'999), "1.0 MB");
  EXPECT_EQ(human_bytes(5'000'000'000), "5.0 GB");
  EXPECT_EQ(human_bytes(5'000'000'000'000), "5.0 TB");
  EXPECT_EQ(human_bytes(5'000'000'000'000'000), "5000.0 TB");
}

TEST(TransferProgress, TellsThePartAndThePaceOfWhatIsNew) {
  const TransferState state{"a", 1'000'000, 3'000'000, 4'000'000, seconds(2)};
  EXPECT_EQ(transfer_text(state, TransferBar::no), "a  75 % of 4.0 MB  1.0 MB/s");
  EXPECT_EQ(transfer_text(state, TransferBar::yes),
            "a  [###############     ]  75 % of 4.0 MB  1.0 MB/s");
}

TEST(TransferProgress, IsNeverFullerThanFullNorFasterThanItIs) {
  EXPECT_EQ(transfer_text({"a", 0, 5, 4, seconds(1)}, TransferBar::yes),
            "a  [####################]  100 % of 4 bytes  5 bytes/s");
  EXPECT_EQ(transfer_text({"a", 0, 5, std::nullopt, seconds(1)}, TransferBar::yes),
            "a  5 bytes  5 bytes/s");
  EXPECT_EQ(transfer_text({"a", 0, 5, 0, seconds(0)}, TransferBar::no), "a  5 bytes  0 bytes/s");
  EXPECT_EQ(transfer_text({"a", 9, 5, 1, seconds(1)}, TransferBar::no),
            "a  100 % of 1 bytes  0 bytes/s")
      << "a file that begins anew";
}

TEST(TransferProgress, ALogHasLinesAboutTheWholeAndFewInBetween) {
  TransferProgress progress("red02: ");
  testing::internal::CaptureStdout();
  progress.begin("a", 0);
  progress.update(1, 2);
  progress.finish(2000, "there");
  progress.say("done");
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "red02: a: 2.0 kB from there in 0.0 s\nred02: done\n");
}
