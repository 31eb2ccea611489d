// SPDX-License-Identifier: MIT
// What a host tells of a python3 that dtool cannot use.
#include "cli/run/host/python_environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

class Python : public testing::Test {
 protected:
  ~Python() override { ::setenv("PATH", path_.c_str(), 1); }

  PythonReply told(const std::string& script) {
    const std::string file = folder_.write("python3", "#!/bin/sh\n" + script);
    ::chmod(file.c_str(), 0755);
    ::setenv("PATH", folder_.path().c_str(), 1);
    return look_at_python();
  }

  tests::TemporaryFolder folder_;
  std::string path_ = std::getenv("PATH");
};

TEST_F(Python, ThatDoesNotStartIsToldWithItsWords) {
  const PythonReply reply = told("echo 'libpython3.12.so.1.0: cannot open' >&2; exit 127");
  EXPECT_EQ(reply.version, "");
  EXPECT_EQ(reply.fault, "libpython3.12.so.1.0: cannot open");
}

TEST_F(Python, ThatIsTooOldIsAsNone) {
  const PythonReply reply = told("echo AssertionError >&2; exit 1");
  EXPECT_EQ(reply.version, "");
  EXPECT_EQ(reply.fault, "");
}

}  // namespace
}  // namespace dtool::host
