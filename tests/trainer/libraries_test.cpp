// The loader's words about a program's libraries.
#include "trainer/launch/libraries.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/trainer/own_folder.h"

namespace dtool::trainer {
namespace {

using Libraries = OwnFolder;

TEST_F(Libraries, NothingIsMissingForAProgramThatRuns) {
  EXPECT_TRUE(missing_libraries("/bin/sh").empty());
}

TEST_F(Libraries, MissingOnesAndVersionsAreNamedOnce) {
  const std::filesystem::path program = folder_ / "program";
  std::ofstream(program) << "#!/bin/sh\n"
                            "[ \"$LD_TRACE_LOADED_OBJECTS\" = 1 ] || exit 1\n"
                            "printf '\\tlibc10.so => not found\\n'\n"
                            "printf '\\tlibm.so.6 => /lib/libm.so.6 (0x0)\\n'\n"
                            "printf '\\tlibc10.so => not found\\n'\n"
                            "echo \"$0: /lib/libc.so.6: version \\`GLIBC_2.99' not found (required "
                            "by $0)\" >&2\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::vector<std::string> wanted = {"libc10.so", "GLIBC_2.99"};
  EXPECT_EQ(missing_libraries(program), wanted);
}

}  // namespace
}  // namespace dtool::trainer
