// SPDX-License-Identifier: MIT
#include "cli/ready/packages.h"

#include <gtest/gtest.h>

#include "cli/action.h"
#include "cli/ready/trainer_bundle.h"
#include "killfiles/whole_file.h"
#include "ssh/host/answers/python_environment.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

TEST(Complaint, IsPipsErrorsOrTheExceptionOfItsTraceback) {
  ssh::Written told;
  told.exit_code = 2;
  told.err = "WARNING: x\nERROR: no numpy\nERROR: none\nmore\n";
  EXPECT_EQ(complaint(told), "no numpy; none");
  told.err =
      "ERROR: Exception:\nTraceback (most recent call last):\n  File \"x\", line 1, in f\n"
      "    g()\nOSError: [Errno 28] No space left on device\n";
  EXPECT_EQ(complaint(told), "OSError: [Errno 28] No space left on device");
  told.err.clear();
  EXPECT_EQ(complaint(told), "exit code 2");
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
  EXPECT_EQ(host::minor_of_python("3.11.2"), 11);
  for (const char* version : {"", "3", "3.", "2.7", "3.x", "3..2", "13.11"})
    EXPECT_EQ(host::minor_of_python(version), 0) << version;
}

TEST(IsCondaFile, GoesByTheName) {
  for (const char* name : {"environment.yml", "lab/gpu.yaml"})
    EXPECT_TRUE(is_conda_file(name)) << name;
  for (const char* name : {"requirements.txt", "uv.lock", "yml"})
    EXPECT_FALSE(is_conda_file(name)) << name;
}

TEST(CheckRequirements, NamesWhatItCannotRead) {
  for (const char* name :
       {"/nowhere/environment.yml", "requirements.toml", "/nowhere/requirements.txt"})
    EXPECT_THROW(check_requirements({name, {}, {}}), UsageError) << name;
}

TEST(CheckRequirements, RefusesFlagsThatTheFileHasNoUseFor) {
  const tests::TemporaryFolder folder;
  for (const char* name : {"requirements.txt", "uv.lock", "environment.yml"})
    killfiles::write_whole(folder.path() / name, "");
  check_requirements({folder.path() / "uv.lock", {"gpu"}, {"plot"}});
  check_requirements({folder.path() / "requirements.txt", {}, {}, OwnPackages::seen});
  EXPECT_THROW(check_requirements({folder.path() / "requirements.txt", {"gpu"}, {}}), UsageError);
  EXPECT_THROW(check_requirements({folder.path() / "environment.yml", {}, {"plot"}}), UsageError);
  EXPECT_THROW(check_requirements({folder.path() / "environment.yml", {}, {}, OwnPackages::seen}),
               UsageError);
}

}  // namespace
}  // namespace dtool::cli
