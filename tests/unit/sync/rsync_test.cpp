// SPDX-License-Identifier: MIT
#include "sync/rsync.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtool::tree_sync {
namespace {

using namespace std::string_literals;

TEST(Rsync, TheFiguresAtTheEndAreRead) {
  const Sent sent = read_sent(
      "\r   8 100%\n\nNumber of files: 6 (reg: 4, dir: 2)\n"
      "Number of regular files transferred: 4\nTotal file size: 8 bytes\n"
      "Total transferred file size: 5800123 bytes\nLiteral data: 8 bytes\n");
  EXPECT_EQ(sent.files, 4U);
  EXPECT_EQ(sent.bytes, 5'800'123U);
  EXPECT_EQ(read_sent("rsync error").files, 0U);
}

TEST(Rsync, ProgressIsReadFromPiecesCutAnywhere) {
  const std::string output =
      "\r              2  25%    0.00kB/s    0:00:00 (xfr#1, to-chk=4/6)"
      "\r          32768  50%    1.95kB/s    0:00:00 (xfr#2, to-chk=3/6)";
  for (std::size_t size = 1; size < output.size(); ++size) {
    ProgressReader reader;
    std::uint64_t bytes = 0;
    for (std::size_t at = 0; at < output.size(); at += size) {
      const std::uint64_t now = reader.add(output.substr(at, size)).sent.bytes;
      EXPECT_GE(now, bytes);
      bytes = now;
    }
    EXPECT_EQ(bytes, 32768U) << "pieces of " << size;
  }
}

TEST(Rsync, ProgressIsAFractionWhateverIsSaid) {
  for (const char* said :
       {"\r 9 4% 1kB/s 0:00:00 (xfr#1, to-chk=-1/9)", "\r 9% (xfr#1, to-chk=-1e300/1e-300)",
        "\r 9% (xfr#1, to-chk=nan/9)", "\r 99999%"}) {
    const double fraction = ProgressReader().add(said).fraction;
    EXPECT_TRUE(fraction >= 0 && fraction <= 1) << said << " " << fraction;
  }
}

}  // namespace
}  // namespace dtool::tree_sync
