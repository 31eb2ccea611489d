// SPDX-License-Identifier: MIT
// A later run gets the environment that was built: whatever was changed since is seen.
#include "ssh/host/answers/python_environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "tests/unit/disk_steps.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

class EnvironmentList : public ::testing::Test {
 protected:
  EnvironmentList() {
    folder_.write("venv/lib/six.py", "one\n");
    folder_.write("venv/lib/words.py", "two\n");
    folder_.write("venv/lib/__pycache__/six.pyc", "code\n");
    fs::create_directories(environment() / "bin");
    fs::create_symlink("/usr/bin/python3", environment() / "bin/python3");
    list_environment(environment(), list());
  }

  fs::path environment() const { return folder_.path() / "venv"; }
  std::string list() const { return folder_.path() / "complete"; }
  std::string change() const { return find_environment_change(environment(), list()); }

  tests::TemporaryFolder folder_;
};

TEST_F(EnvironmentList, AnUntouchedEnvironmentDoesNotDiffer) {
  EXPECT_EQ(change(), "");
}

TEST_F(EnvironmentList, AnEditShowsThoughItsSizeAndTimeAreAsBefore) {
  const std::string file = environment() / "lib/six.py";
  struct stat before {};
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  folder_.write("venv/lib/six.py", "ONE\n");
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  EXPECT_EQ(change(), "lib/six.py was changed");
}

TEST_F(EnvironmentList, WhatIsGoneOrWasAddedShows) {
  fs::rename(environment() / "lib/words.py", folder_.path() / "words.py");
  EXPECT_EQ(change(), "lib/words.py is gone");
  fs::rename(folder_.path() / "words.py", environment() / "lib/words.py");
  list_environment(environment(), list());
  folder_.write("venv/lib/sitecustomize.py");
  EXPECT_EQ(change(), "lib/sitecustomize.py was added");
  fs::remove(environment() / "lib/sitecustomize.py");
  EXPECT_EQ(change(), "");
  fs::remove(environment() / "bin/python3");
  fs::create_symlink("/usr/bin/python4", environment() / "bin/python3");
  EXPECT_EQ(change(), "bin/python3 was changed");
  fs::remove_all(environment());
  EXPECT_EQ(change(), "cannot read " + environment().string() + ": No such file or directory");
}

TEST_F(EnvironmentList, TheFirstDifferenceIsTold) {
  folder_.write("venv/zzz");
  EXPECT_EQ(change(), "zzz was added") << "behind all others";
  fs::remove(environment() / "lib/six.py");
  EXPECT_EQ(change(), "lib/six.py is gone");
  folder_.write("venv/aaa");
  EXPECT_EQ(change(), "aaa was added");
}

TEST_F(EnvironmentList, IsWrittenOnceAllIsOnTheDisk) {
  const tests::DiskSteps steps;
  list_environment(environment(), list());
  const std::size_t flushed = steps.text().find("flush all");
  EXPECT_NE(flushed, std::string::npos) << steps.text();
  EXPECT_LT(flushed, steps.text().find("name ")) << steps.text();
}

TEST_F(EnvironmentList, PythonMayKeepItsBytecode) {
  folder_.write("venv/lib/__pycache__/six.pyc", "other code\n");
  folder_.write("venv/lib/__pycache__/words.pyc");
  fs::create_directories(environment() / "bin/__pycache__");
  EXPECT_EQ(change(), "");
}

TEST_F(EnvironmentList, AFileWithoutFactsInTheListIsNone) {
  const std::string whole = folder_.read("complete");
  folder_.write("complete", whole.substr(0, whole.find('\0') + 1) + "bin/python3" + '\0');
  EXPECT_EQ(change(), "bin/python3 was added");
}

TEST_F(EnvironmentList, WithoutAWholeListItWasNotBuiltToItsEnd) {
  for (const char* text : {"", "3.11\n", "dtool's list"}) {
    folder_.write("complete", text);
    EXPECT_EQ(change(), "there is no list of its files") << text;
  }
  const std::string whole = folder_.read("complete");
  folder_.write("complete", "a" + whole);
  EXPECT_EQ(change(), "there is no list of its files") << "of another version";
  fs::remove(list());
  EXPECT_EQ(change(), "there is no list of its files");
}

}  // namespace
}  // namespace dtool::host
