// SPDX-License-Identifier: MIT
#include "cli/run/wheels.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "cli/action.h"
#include "cli/run/conda_packages.h"
#include "cli/run/host/python_environment.h"
#include "cli/run/trainer_bundle.h"

namespace dtool::cli {
namespace {

TEST(LockLine, PinsTheWheelsVersionAndContent) {
  EXPECT_EQ(lock_line("numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.whl", "ab"),
            "numpy==2.4.6 --hash=sha256:ab\n");
  EXPECT_EQ(lock_line("torch-2.11.0+cu130-cp311-cp311-linux_x86_64.whl", "ab"),
            "torch==2.11.0+cu130 --hash=sha256:ab\n");
  EXPECT_EQ(lock_line("zope.interface-7.0-1local-py3-none-any.whl", "ab"),
            "zope.interface==7.0 --hash=sha256:ab\n");
}

TEST(LockLine, RefusesNamesThatAreNoWheels) {
  for (const char* name : {"numpy-2.4.6.tar.gz", "a b-1-py3-none-any.whl", "x-1-py3-any.whl",
                           "--index-url=x-1-py3-none-any.whl ", "a-1;x-py3-none-any.whl"})
    EXPECT_THROW(lock_line(name, "ab"), std::runtime_error) << name;
}

TEST(GlibcOf, ReadsItsMinorVersion) {
  EXPECT_EQ(glibc_of("glibc 2.36"), 36);
  EXPECT_EQ(glibc_of("glibc 2.36.1"), 36);
  EXPECT_EQ(glibc_of("glibc 2."), 0);
  EXPECT_EQ(glibc_of("musl 1.2"), 0);
  EXPECT_EQ(glibc_of(""), 0);
}

TEST(MinorOfPython, IsZeroForWhatIsNoVersionOfPython3) {
  EXPECT_EQ(host::minor_of_python("3.11"), 11);
  for (const char* version : {"", "3", "3.", "2.7", "3.x", "3.11.2", "13.11"})
    EXPECT_EQ(host::minor_of_python(version), 0) << version;
}

TEST(IsCondaFile, GoesByTheName) {
  for (const char* name : {"environment.yml", "lab/gpu.yaml"})
    EXPECT_TRUE(is_conda_file(name)) << name;
  for (const char* name : {"requirements.txt", "uv.lock", "yml"})
    EXPECT_FALSE(is_conda_file(name)) << name;
}

TEST(CheckRequirements, NamesWhatItCannotRead) {
  EXPECT_THROW(check_requirements("/nowhere/environment.yml"), UsageError);
  EXPECT_THROW(check_requirements("requirements.toml"), UsageError);
  EXPECT_THROW(check_requirements("/nowhere/requirements.txt"), UsageError);
}

}  // namespace
}  // namespace dtool::cli
