// SPDX-License-Identifier: MIT
// The order in which a record comes onto a disk.
#include "ssh/host/files.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace dtool::host {
namespace {

/// Notes what is done with it.
struct NotedDisk : Disk {
  void make(const std::string& path) override { steps += "make " + path + "\n"; }
  void open(const std::string& path) override { steps += "open " + path + "\n"; }
  void write(const std::string& path, std::string_view content) override {
    steps += "write " + path + " " + std::string(content) + "\n";
  }
  void flush(const std::string& path) override { steps += "flush " + path + "\n"; }
  void rename(const std::string& from, const std::string& to) override {
    steps += "rename " + from + " " + to + "\n";
  }

  std::string steps;
};

TEST(RecordSteps, AFileGetsItsNameOnceItsBytesAreOnTheDisk) {
  NotedDisk disk;
  write_whole(disk, "f", "x");
  EXPECT_EQ(disk.steps, "make f.new\nwrite f.new x\nflush f.new\nrename f.new f\n");
}

TEST(RecordSteps, AReservedFileIsWrittenOver) {
  NotedDisk disk;
  write_reserved(disk, "f", "x");
  EXPECT_EQ(disk.steps, "open f.new\nwrite f.new x\nflush f.new\nrename f.new f\n");
}

}  // namespace
}  // namespace dtool::host
