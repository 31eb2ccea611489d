// SPDX-License-Identifier: MIT
// Where this program's file is, and which versions beside it go.
#include "ssh/host/versions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "tests/unit/own_program.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

const tests::OwnProgram kRemove("remove_old_versions", [] {
  remove_old_versions();
  return 0;
});

const tests::OwnProgram kNameItself("name_itself_without_its_file", [] {
  const std::string path = own_path();
  fs::remove(path);
  std::puts((own_path() == path ? path : own_path()).c_str());
  return 0;
});

const tests::OwnProgram kWait("wait_to_be_ended", [] {
  for (;;) ::pause();
  return 0;
});

class OwnVersions : public testing::Test {
 protected:
  /// The program of that version; a program that the system has, or this one.
  fs::path version(char digit, const fs::path& program) const {
    const fs::path file = folder_.path() / std::string(64, digit) / "dtool-host";
    fs::create_directory(file.parent_path());
    fs::copy_file(program, file);
    return file;
  }
  static void make_old(const fs::path& file) {
    const timespec times[] = {{1'000'000, 0}, {1'000'000, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, file.parent_path().c_str(), times, 0), 0);
  }

  tests::TemporaryFolder folder_;
};

TEST(OwnPath, IsTheFileOfTheRunningProgram) {
  EXPECT_EQ(own_path(), fs::read_symlink("/proc/self/exe"));
}

TEST_F(OwnVersions, AProgramWhoseFileIsGoneStillKnowsWhereItWas) {
  const fs::path own = version('0', own_path());
  const ChildResult named =
      run_program({own, "name_itself_without_its_file"}, std::chrono::seconds(50));
  EXPECT_EQ(named.out, own.native() + "\n");
}

TEST_F(OwnVersions, OldOnesThatNoProcessRunsGo) {
  const fs::path own = version('0', own_path());
  const fs::path unused = version('1', "/bin/true");
  const fs::path running = version('2', own_path());
  const fs::path young = version('3', "/bin/true");
  for (const fs::path& each : {own, unused, running}) make_old(each);
  const Child child({running, "wait_to_be_ended"}, "/");
  const auto runs = [](const fs::path& file) {
    for (const pid_t each : list_pids()) {
      std::error_code gone;
      if (fs::read_symlink("/proc/" + std::to_string(each) + "/exe", gone) == file) return true;
    }
    return false;
  };
  for (int i = 0; i < 1000 && !runs(running); ++i) pause(std::chrono::milliseconds(10));
  EXPECT_EQ(run_program({own, "remove_old_versions"}, std::chrono::seconds(50)).exit_code, 0);
  EXPECT_TRUE(fs::exists(own));
  EXPECT_FALSE(fs::exists(unused.parent_path()));
  EXPECT_TRUE(fs::exists(running));
  EXPECT_TRUE(fs::exists(young));
}

}  // namespace
}  // namespace dtool::host
