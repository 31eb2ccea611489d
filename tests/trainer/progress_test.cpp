// SPDX-License-Identifier: MIT
// progress_bar, event_file, append_file and progress_log: what rank 0 tells.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/trainer/own_folder.h"
#include "trainer/report/metrics.h"
#include "trainer/report/progress_log.h"
#include "trainer/report/written_file.h"

using namespace dtool::trainer;
using std::chrono::seconds;

namespace {

class Progress : public OwnFolder {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

const BarState kState = {"2/5", 1400, 0.5, Averages{0.18731, 0.001, 224524}, seconds(192)};

}  // namespace

TEST(ProgressBar, HasEverythingInEightyColumns) {
  EXPECT_EQ(progress_bar(kState, 79),
            "epoch 2/5 [===>  ]  step 1400  loss 0.1873  lr 0.001  samples/s 225k  3:12 left");
}

TEST(ProgressBar, IsRoomyWhereThereIsRoom) {
  EXPECT_EQ(progress_bar(kState, 199), "epoch 2/5 [" + std::string(20, '=') + ">" +
                                           std::string(19, ' ') +
                                           "]  step 1400  loss 0.1873  lr 0.001  samples/s 225k  "
                                           "3:12 left");
}

TEST(ProgressBar, NeverIsWiderThanTheTerminalAndKeepsTheStepLongest) {
  for (int columns = 0; columns < 300; ++columns) {
    EXPECT_LE(progress_bar(kState, columns).size(), static_cast<std::size_t>(columns));
  }
  EXPECT_EQ(progress_bar(kState, -1), "");
  EXPECT_EQ(progress_bar(kState, 60),
            "epoch 2/5 [======>      ]  step 1400  loss 0.1873  3:12 left");
  EXPECT_EQ(progress_bar(kState, 30), "epoch 2/5 [===>   ]  step 1400");
  EXPECT_EQ(progress_bar(kState, 20), "epoch 2/5 step 1400");
}

TEST(ProgressBar, IsFullOnlyWhenAllIsDone) {
  BarState state = {"5/5", 9, 0.9999, std::nullopt, std::nullopt};
  EXPECT_EQ(progress_bar(state, 28), "epoch 5/5 [=======>]  step 9");
  state.done = 1;
  EXPECT_EQ(progress_bar(state, 28), "epoch 5/5 [========]  step 9");
  state.done = 0;
  EXPECT_EQ(progress_bar(state, 28), "epoch 5/5 [>       ]  step 9");
}

TEST(TimeLeft, IsTheSamePaceForTheRest) {
  EXPECT_EQ(time_left(seconds(10), 0, 0.25), seconds(30));
  EXPECT_EQ(time_left(seconds(10), 0.5, 0.75), seconds(10)) << "a resumed run has its own pace";
  EXPECT_EQ(time_left(seconds(10), 0, 1), seconds(0));
  EXPECT_EQ(time_left(seconds(10), 0.5, 0.5), std::nullopt);
  EXPECT_EQ(time_left(seconds(10), 0, 1e-300), std::nullopt);
  EXPECT_EQ(time_left(seconds(10), 0, std::nan("")), std::nullopt);
}

TEST(TimeLeft, IsToldInTheTwoLargestUnits) {
  EXPECT_EQ(in_words(seconds(0)), "0 s");
  EXPECT_EQ(in_words(seconds(59)), "59 s");
  EXPECT_EQ(in_words(seconds(192)), "3 min 12 s");
  EXPECT_EQ(in_words(seconds(7505)), "2 h 5 min");
  EXPECT_EQ(in_words(seconds(4 * 86400 + 3 * 3600 + 59)), "4 d 3 h");
}

// RFC 3720, appendix B.4.
TEST(EventFile, ItsChecksumIsThatOfTheStandard) {
  std::string up, down;
  for (int i = 0; i < 32; ++i) up += static_cast<char>(i);
  down.assign(up.rbegin(), up.rend());
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(up), 0x46dd794eu);
  EXPECT_EQ(crc32c(down), 0x113fdb5cu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u) << "the catalogue's check value";
}

TEST(EventFile, ARecordIsLengthChecksumDataChecksum) {
  const std::string record = event_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST_F(Progress, TwoEventFilesOfOneSecondAreTwoFiles) {
  EventFile first(folder_ / "tensorboard", 1);
  EventFile second(folder_ / "tensorboard", 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "tensorboard"), {}), 2);
}

TEST_F(Progress, AHalfLineIsCutAndWholeOnesStay) {
  const std::string many = std::string(5000, 'x') + "\n" + std::string(9000, 'y');
  for (const std::string whole : {"", "one\n", "one\ntwo\n"}) {
    write("lines", whole + "half");
    AppendFile(folder_ / "lines", HalfLine::cut).append("new\n");
    EXPECT_EQ(read("lines"), whole + "new\n");
  }
  write("lines", many);
  AppendFile(folder_ / "lines", HalfLine::cut).append("new\n");
  EXPECT_EQ(read("lines"), std::string(5000, 'x') + "\nnew\n");
  write("bytes", "no line");
  AppendFile(folder_ / "bytes", HalfLine::keep).append("new");
  EXPECT_EQ(read("bytes"), "no linenew");
}

TEST_F(Progress, AFullDiskAndAMissingFolderAreToldWithTheFilesName) {
  try {
    AppendFile("/dev/full", HalfLine::keep).append("x");
    FAIL() << "nothing thrown";
  } catch (const std::system_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("/dev/full"), std::string::npos);
    EXPECT_EQ(problem.code().value(), ENOSPC);
  }
  EXPECT_THROW(AppendFile(folder_ / "nowhere/file", HalfLine::cut), std::system_error);
}

TEST_F(Progress, MetricsSayWhereARunBeginsAndTellEveryScore) {
  {
    ProgressLog log(folder_, TensorBoard::off, {7, 2, "a.pt", 40, 0.5});
    log.epoch({{2, 4, 50, 0.75}, 0.5, 0.25, 1000, {{"test_loss", 2}, {"test_accuracy", 0.125}}});
  }
  const std::string lines = read("metrics.jsonl");
  EXPECT_NE(lines.find(R"("seed": 7, "world_size": 2, "step": 40, "resumed_from": "a.pt"})"),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find(R"("epoch": 2, "step": 50, "loss": 0.5, "learning_rate": 0.25, )"
                       R"("samples_per_s": 1000, "test_loss": 2, "test_accuracy": 0.125})"),
            std::string::npos)
      << lines;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tensorboard"));
}
