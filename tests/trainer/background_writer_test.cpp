#include "trainer/training/background_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

using namespace dtool::trainer;

namespace {

/// A disk that does nothing before it is let go.
struct Disk {
  std::atomic<bool> goes_on = false;
  std::vector<std::string> written;
  BackgroundWriter writer;

  void add(const std::string& kind, std::int64_t number, std::int64_t most,
           std::int64_t bytes = 1) {
    writer.add({kind, number, bytes,
                [this, kind, number] {
                  goes_on.wait(false);
                  written.push_back(kind + " " + std::to_string(number));
                }},
               most);
  }
  void go_on() {
    goes_on = true;
    goes_on.notify_all();
    writer.finish();
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST(BackgroundWriter, WritesInOrderWithoutHoldingUpItsCaller) {
  Disk disk;
  disk.add("step", 1, 9);
  disk.add("best", 1, 1);
  disk.add("step", 2, 9);
  EXPECT_EQ(disk.writer.last_written("step"), -1);
  disk.go_on();
  EXPECT_EQ(disk.written, (Names{"step 1", "best 1", "step 2"}));
  EXPECT_EQ(disk.writer.last_written("step"), 2);
  EXPECT_EQ(disk.writer.last_written("best"), 1);
}

TEST(BackgroundWriter, LeavesOutTheOldestThatWaitWhereTheyAreTooMany) {
  Disk disk;
  for (const int number : {1, 2, 3, 4, 5}) {
    disk.add("step", number, 2);
    disk.add("best", number, 1);
  }
  disk.go_on();
  // The first may have been under way or not.
  if (disk.written.front() == "step 1") disk.written.erase(disk.written.begin());
  EXPECT_EQ(disk.written, (Names{"step 4", "step 5", "best 5"}));
}

TEST(BackgroundWriter, HoldsNoMoreMemoryThanItsLimitBesidesTheNewest) {
  Disk disk;
  disk.add("best", 0, 1);
  for (const int number : {1, 2, 3}) disk.add("step", number, 9, BackgroundWriter::kMostBytes);
  disk.go_on();
  EXPECT_EQ(disk.written, (Names{"best 0", "step 3"}));
}

TEST(BackgroundWriter, PassesOnWhatWentWrong) {
  BackgroundWriter writer;
  writer.add({"step", 1, 1, [] { throw std::runtime_error("no space left"); }}, 1);
  EXPECT_THROW(writer.finish(), std::runtime_error);
  EXPECT_THROW(writer.check(), std::runtime_error);
  EXPECT_THROW(writer.add({"step", 2, 1, [] {}}, 1), std::runtime_error);
}
