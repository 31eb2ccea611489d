// SPDX-License-Identifier: MIT
// The PyTorch of an environment is found without running it, and its version only counts if it is
// one.
#include "ssh/host/answers/trainers.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "ssh/host/child.h"
#include "ssh/wire/check.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using tests::TemporaryFolder;
using tests::TemporaryVariable;

TEST(PyTorchVersion, IsTheLineOfItsFile) {
  EXPECT_EQ(pytorch_version("from typing import Optional\n\n__all__ = ['__version__', 'debug']\n"
                            "__version__ = '2.11.0+cu130'\ndebug = False\n"),
            "2.11.0+cu130");
  EXPECT_EQ(pytorch_version("__version__ = \"1.13.0a0\""), "1.13.0a0");
  for (const std::string& version :
       {std::string("1"), std::string("0a9z.AZ+-_"), std::string(64, '1')})
    EXPECT_EQ(pytorch_version("__version__ = '" + version + "'\n"), version);
}

TEST(PyTorchVersion, IsNothingThatHasToBeComputedAndNoOddText) {
  EXPECT_EQ(pytorch_version(""), "");
  EXPECT_EQ(pytorch_version("version = '2.11.0'\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = '2.11.0' + local\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = '2.11.0\"\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = ''\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = '\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = '2.11.0; rm'\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = '2.11.0\x1b[31m'\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = '" + std::string(65, '1') + "'\n"), "");
  EXPECT_EQ(pytorch_version("__version__ = 121\n__version__ = '1'\n"), "");
  for (const char odd : std::string_view("/:@[`{ "))
    EXPECT_EQ(pytorch_version(std::string("__version__ = '1") + odd + "'\n"), "") << odd;
}

TEST(PyTorchFolder, HasNoSignThatTheLoaderReadsAsAnotherThing) {
  EXPECT_TRUE(can_be_searched("/home/ann/my venv/torch"));
  for (const char* each : {"", "torch", "/a:b", "/a;b", "/$ORIGIN/torch", "/a\nb", "/a\x7f"})
    EXPECT_FALSE(can_be_searched(each)) << each;
}

class FindPyTorch : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_program("python3")) GTEST_SKIP() << "no python3";
  }

  TemporaryFolder folder_;
};

TEST_F(FindPyTorch, AsksPythonAndRunsNothingOfThePackage) {
  const std::string ran = (folder_.path() / "ran").string();
  folder_.write("torch/__init__.py", "open('" + ran + "', 'w')\n");
  folder_.write("torch/version.py", "open('" + ran + "', 'w')\n__version__ = '2.9.1+cu130'\n");
  const TemporaryVariable path("PYTHONPATH", folder_.path().string());
  const PyTorch found = find_pytorch({"env", "X=1"});
  EXPECT_EQ(found.folder, (folder_.path() / "torch").string());
  EXPECT_EQ(found.version, "2.9.1+cu130");
  EXPECT_FALSE(std::filesystem::exists(ran));
}

TEST_F(FindPyTorch, TakesNoFolderOfThatNameWhereItHappensToStand) {
  folder_.write("torch/__init__.py", "");
  folder_.write("torch/version.py", "__version__ = '0.0.1'\n");
  const TemporaryVariable path("PYTHONPATH", "");
  const PyTorch found =
      find_pytorch({"env", "-C", folder_.path().string(), "PYTHONDONTWRITEBYTECODE=1"});
  EXPECT_NE(found.folder, (folder_.path() / "torch").string());
}

TEST_F(FindPyTorch, NamesAPackageWithoutAVersion) {
  folder_.write("torch/__init__.py", "");
  const TemporaryVariable path("PYTHONPATH", folder_.path().string());
  const PyTorch found = find_pytorch({});
  EXPECT_EQ(found.folder, (folder_.path() / "torch").string());
  EXPECT_EQ(found.version, "");
}

TEST_F(FindPyTorch, IsNotConfusedByWhatPythonPrintsFirst) {
  const auto python = folder_.write(
      "bin/python3", "#!/bin/sh\necho noise\nexec " + find_program("python3") + " \"$@\"\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  folder_.write("torch/__init__.py", "");
  folder_.write("torch/version.py", "__version__ = '2.9.1'\n");
  const TemporaryVariable own("PYTHONPATH", folder_.path().string());
  const TemporaryVariable path("PATH",
                               folder_.path().string() + "/bin:" + std::string(getenv("PATH")));
  EXPECT_EQ(find_pytorch({}).version, "2.9.1");
}

TEST(FindNoPyTorch, WithoutPythonThereIsNone) {
  EXPECT_EQ(find_pytorch({"env", "PATH=/nowhere"}).folder, "");
}

}  // namespace
}  // namespace dtool::host
