// SPDX-License-Identifier: MIT
// A disk that the test holds up: which checkpoints are written, in which order, and what is told.
#include "trainer/training/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace dtool::trainer {
namespace {

using std::chrono::milliseconds;
using Kind = CheckpointWriter::Kind;
using Steps = std::vector<std::int64_t>;

/// Each write waits until the test lets it go on.
class Disk {
 public:
  std::function<void()> write(const std::string& name) {
    return [this, name] {
      begun_.set_value();
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_open_; });
      written_.push_back(name);
      if (name == "full") throw std::runtime_error("no space");
    };
  }
  std::function<void()> write_at_once(const std::string& name) {
    return [this, name] {
      const std::lock_guard lock(mutex_);
      written_.push_back(name);
    };
  }
  void await_begin() { begun_.get_future().wait(); }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
    }
    changed_.notify_all();
  }
  std::vector<std::string> written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }

 private:
  std::promise<void> begun_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  std::vector<std::string> written_;
};

using Names = std::vector<std::string>;

TEST(CheckpointWriter, DoesNotHoldUpItsCaller) {
  Disk disk;
  CheckpointWriter writer(milliseconds(0));
  writer.submit(Kind::step, 1, disk.write("1"));
  disk.await_begin();
  EXPECT_EQ(writer.take_news().written, Steps()) << "nothing is told before it is written";
  disk.open();
  writer.wait();
  EXPECT_EQ(writer.take_news().written, Steps{1});
  EXPECT_EQ(writer.take_news().written, Steps()) << "each is told once";
}

TEST(CheckpointWriter, LeavesOutTheOlderOfTwoThatWaitAndKeepsTheBest) {
  Disk disk;
  CheckpointWriter writer(milliseconds(1));
  writer.submit(Kind::step, 1, disk.write("1"));
  disk.await_begin();
  writer.submit(Kind::best, 2, disk.write_at_once("best of 2"));
  writer.submit(Kind::step, 2, disk.write_at_once("2"));
  writer.submit(Kind::step, 3, disk.write_at_once("3"));
  disk.open();
  writer.wait();
  EXPECT_EQ(disk.written(), (Names{"1", "best of 2", "3"}));
  const auto news = writer.take_news();
  EXPECT_EQ(news.written, (Steps{1, 3}));
  EXPECT_EQ(news.left_out, Steps{2});
}

TEST(CheckpointWriter, WaitsForAFreePlaceWhereOneIsSoonThere) {
  Disk disk;
  disk.open();
  CheckpointWriter writer(std::chrono::seconds(60));
  for (int i = 0; i < 100; ++i) writer.submit(Kind::step, i, disk.write_at_once(std::to_string(i)));
  writer.wait();
  EXPECT_EQ(disk.written().size(), 100U);
}

TEST(CheckpointWriter, WritesTheNewestStepFirstWhereItIsWaitedFor) {
  Disk disk;
  CheckpointWriter writer(milliseconds(0));
  writer.submit(Kind::step, 1, disk.write("1"));
  disk.await_begin();
  writer.submit(Kind::best, 2, disk.write_at_once("best"));
  writer.submit(Kind::step, 2, disk.write_at_once("2"));
  auto waits = std::async(std::launch::async, [&] { writer.wait_for(Kind::step); });
  EXPECT_EQ(waits.wait_for(milliseconds(50)), std::future_status::timeout);
  disk.open();
  waits.get();
  writer.wait();
  EXPECT_EQ(disk.written(), (Names{"1", "2", "best"}));
}

TEST(CheckpointWriter, WritesWhatWaitsBeforeItsEnd) {
  Disk disk;
  {
    CheckpointWriter writer(milliseconds(0));
    writer.submit(Kind::step, 1, disk.write("1"));
    disk.await_begin();
    writer.submit(Kind::best, 2, disk.write_at_once("best"));
    writer.submit(Kind::step, 2, disk.write_at_once("2"));
    disk.open();
  }
  EXPECT_EQ(disk.written(), (Names{"1", "best", "2"}));
}

TEST(CheckpointWriter, TellsOfAFailureOnceAndWritesNothingMore) {
  Disk disk;
  CheckpointWriter writer(milliseconds(0));
  writer.submit(Kind::step, 1, disk.write("full"));
  disk.await_begin();
  writer.submit(Kind::step, 2, disk.write_at_once("2"));
  disk.open();
  EXPECT_THROW(writer.wait(), std::runtime_error);
  writer.submit(Kind::step, 3, disk.write_at_once("3"));
  writer.wait();
  EXPECT_EQ(writer.take_news().written, Steps());
  EXPECT_EQ(disk.written(), Names{"full"});
}

TEST(CheckpointWriter, TellsOfAFailureWhoeverAsksFirst) {
  const std::vector<std::function<void(CheckpointWriter&)>> questions = {
      [](CheckpointWriter& writer) { writer.take_news(); },
      [](CheckpointWriter& writer) { writer.wait_for(Kind::step); },
      [](CheckpointWriter& writer) { writer.wait_for(Kind::best); },
      [](CheckpointWriter& writer) { writer.wait(); }};
  for (const auto& ask : questions) {
    CheckpointWriter writer(milliseconds(0));
    writer.submit(Kind::step, 1, [] { throw std::runtime_error("no space"); });
    finish_writing(std::chrono::seconds(60));
    EXPECT_THROW(ask(writer), std::runtime_error);
    EXPECT_NO_THROW(ask(writer)) << "it is told once";
  }
}

TEST(CheckpointWriter, AWaitForAKindLastsWhileOneOfItIsWrittenAndNoLonger) {
  Disk disk;
  CheckpointWriter writer(milliseconds(0));
  writer.submit(Kind::best, 1, disk.write("best"));
  disk.await_begin();
  writer.wait_for(Kind::step);  // there is none
  auto waits = std::async(std::launch::async, [&] { writer.wait_for(Kind::best); });
  EXPECT_EQ(waits.wait_for(milliseconds(50)), std::future_status::timeout);
  disk.open();
  waits.get();
  EXPECT_EQ(disk.written(), Names{"best"});
  EXPECT_EQ(writer.take_news().written, Steps()) << "the best model answers no request";
}

TEST(CheckpointWriter, ABestModelGivesWayToABetterOneWithoutAWord) {
  Disk disk;
  CheckpointWriter writer(milliseconds(1));
  writer.submit(Kind::step, 1, disk.write("1"));
  disk.await_begin();
  writer.submit(Kind::best, 2, disk.write_at_once("best of 2"));
  writer.submit(Kind::best, 3, disk.write_at_once("best of 3"));
  disk.open();
  writer.wait();
  EXPECT_EQ(disk.written(), (Names{"1", "best of 3"}));
  EXPECT_EQ(writer.take_news().left_out, Steps());
}

TEST(CheckpointWriter, AFailureThatNobodyHasHeardOfIsToldAtItsEnd) {
  const auto told_by = [](bool is_heard, const std::string& name) {
    testing::internal::CaptureStderr();
    {
      CheckpointWriter writer(milliseconds(0));
      writer.submit(Kind::step, 1, [name] {
        if (name == "full") throw std::runtime_error("no space");
      });
      if (is_heard) {
        EXPECT_THROW(writer.wait(), std::runtime_error);
      }
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told_by(false, "full"), "dtool-trainer: no space\n");
  EXPECT_EQ(told_by(true, "full"), "");
  EXPECT_EQ(told_by(false, "1"), "");
}

TEST(CheckpointWriter, IsWaitedForByAProcessThatEnds) {
  finish_writing(std::chrono::seconds(60));  // there is none
  Disk disk;
  CheckpointWriter writer(milliseconds(0));
  writer.submit(Kind::step, 1, disk.write("1"));
  disk.await_begin();
  finish_writing(std::chrono::seconds(0));
  EXPECT_EQ(disk.written(), Names());
  disk.open();
  finish_writing(std::chrono::seconds(60));
  EXPECT_EQ(disk.written(), Names{"1"});
}

}  // namespace
}  // namespace dtool::trainer
