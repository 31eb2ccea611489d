// SPDX-License-Identifier: MIT
// What dtool-host says of files and disks.
#include "ssh/host/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

/// Writes it in pieces of that size to a new file, and returns the file's bytes and the size of the
/// blocks that it takes.
std::pair<std::string, std::uint64_t> written(const std::string& text, std::size_t piece) {
  std::string path = testing::TempDir() + "dtool_holes_XXXXXX";
  const Descriptor file(::mkstemp(path.data()));
  for (std::size_t at = 0; at < text.size(); at += piece)
    write_with_holes(file.get(), std::string_view(text).substr(at, piece));
  end_hole(file.get());
  struct stat found {};
  ::fstat(file.get(), &found);
  const std::string bytes = read_file(path, 100U << 20U).value();
  ::unlink(path.c_str());
  constexpr std::uint64_t kUnit = 512;  // of st_blocks
  return {bytes, static_cast<std::uint64_t>(found.st_blocks) * kUnit};
}

TEST(WriteWithHoles, ZerosTakeNoRoomAndEveryByteIsThere) {
  const std::string zeros(3'000'000, '\0');
  const std::string text = "begin" + zeros + "middle" + zeros;
  for (const std::size_t piece : {100UL, 4096UL, 65536UL, 10'000'000UL}) {
    const auto [bytes, room] = written(text, piece);
    EXPECT_TRUE(bytes == text) << piece;
    EXPECT_LT(room, piece < 65536 ? 10'000'000U : 100'000U) << piece;
  }
  EXPECT_EQ(written("", 10).first, "");
  EXPECT_EQ(written(std::string(5000, '\0'), 5000).first.size(), 5000U);
  EXPECT_EQ(written(std::string(8192, '\0'), 4096).first.size(), 8192U);
}

TEST(WriteWithHoles, WhatWasThereIsWrittenOver) {
  std::string path = testing::TempDir() + "dtool_holes_XXXXXX";
  const Descriptor file(::mkstemp(path.data()));
  write_all(file.get(), std::string(20'000, 'x'));
  ::lseek(file.get(), 0, SEEK_SET);
  write_with_holes(file.get(), std::string(10'000, '\0'));
  end_hole(file.get());
  EXPECT_TRUE(read_file(path).value() == std::string(10'000, '\0') + std::string(10'000, 'x'));
  ::unlink(path.c_str());
}

TEST(ReadFile, HasAsMuchAsIsWantedOrNothing) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path() / "file";
  std::ofstream(file) << "one\ntwo" << std::string(20'000, 'x');
  EXPECT_EQ(read_file(file, 5), "one\nt");
  EXPECT_EQ(read_file(file, 1 << 20)->size(), 20'007U);
  EXPECT_EQ(read_line(file), "one");
  EXPECT_EQ(read_file(folder.path() / "none", 5), std::nullopt);
  EXPECT_EQ(read_file(folder.path(), 5), std::nullopt) << "a folder";
}

/// A pipe has nothing to flush.
TEST(FlushToDisk, FailsWhereTheDiskDoesAndNowhereElse) {
  const tests::TemporaryFolder folder;
  const Descriptor file(::open((folder.path() / "file").c_str(), O_WRONLY | O_CREAT, 0600));
  errno = 0;
  EXPECT_NO_THROW(flush_to_disk(file.get(), "file"));
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_NO_THROW(flush_to_disk(ends[1], "pipe"));
  for (const int end : ends) ::close(end);
  EXPECT_THROW(flush_to_disk(-1, "file"), std::runtime_error);
}

TEST(MakeFolder, IsTrueOnlyIfTheFolderIsThereThen) {
  const tests::TemporaryFolder scratch;
  const std::string base = scratch.path().native();
  EXPECT_TRUE(make_folder(base + "/new"));
  EXPECT_TRUE(is_folder(base + "/new"));
  EXPECT_TRUE(make_folder(base + "/new"));
  EXPECT_FALSE(make_folder(base + "/missing/new"));
  EXPECT_EQ(errno, ENOENT);
  scratch.write("file", "");
  EXPECT_FALSE(make_folder(base + "/file"));
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_TRUE(make_folders(base + "/missing/one/two"));
  EXPECT_TRUE(is_folder(base + "/missing/one/two"));
  EXPECT_FALSE(make_folders(base + "/file/one"));
}

TEST(IsNewer, ComparesTimesToTheNanosecond) {
  const tests::TemporaryFolder scratch;
  const std::string one = (scratch.path() / "one").native();
  const std::string two = (scratch.path() / "two").native();
  EXPECT_FALSE(is_newer(one, two));
  scratch.write("one", "");
  EXPECT_TRUE(is_newer(one, two));
  EXPECT_FALSE(is_newer(two, one));
  scratch.write("two", "");
  const auto dated = [](const std::string& path, time_t seconds, long nanoseconds) {
    const std::array<timespec, 2> times{timespec{seconds, nanoseconds}, {seconds, nanoseconds}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  };
  dated(one, 1000, 5);
  dated(two, 1000, 5);
  EXPECT_FALSE(is_newer(one, two));
  dated(one, 1000, 6);
  EXPECT_TRUE(is_newer(one, two));
  EXPECT_FALSE(is_newer(two, one));
  dated(two, 1001, 0);
  EXPECT_TRUE(is_newer(two, one));
}

TEST(FreeBytes, BlocksThatAreKeptForRootAreNotFree) {
  struct statvfs disk {};
  disk.f_bsize = 1U << 20U;  // only a hint for reading
  disk.f_frsize = 4096;
  disk.f_blocks = 1000;
  disk.f_bfree = 100;
  disk.f_bavail = 60;
  EXPECT_EQ(free_bytes(disk), 60U * 4096U);
  disk.f_bavail = 0;
  EXPECT_EQ(free_bytes(disk), 0U);
}

}  // namespace
}  // namespace dtool::host
