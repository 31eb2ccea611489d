// SPDX-License-Identifier: MIT
// The loader's words about a program's libraries.
#include "trainer/launch/workers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dtool::trainer {
namespace {

TEST(Libraries, NothingIsMissingForAProgramThatRuns) {
  EXPECT_TRUE(missing_libraries("/bin/sh").empty());
}

TEST(Libraries, AProgramThatCannotBeStartedIsMissingItself) {
  EXPECT_EQ(missing_libraries("/nowhere/worker"), std::vector<std::string>{"/nowhere/worker"});
}

TEST(Libraries, MissingOnesAndVersionsAreNamedOnce) {
  const std::vector<std::string> wanted = {"libc10.so", "GLIBC_2.99"};
  EXPECT_EQ(missing_in_trace("\tlibc10.so => not found\n"
                             "\tlibm.so.6 => /lib/libm.so.6 (0x0)\n"
                             "\tlibc10.so => not found\n"
                             "/x/worker: /lib/libc.so.6: version `GLIBC_2.99' not found (required "
                             "by /x/worker)"),
            wanted);
}

}  // namespace
}  // namespace dtool::trainer
