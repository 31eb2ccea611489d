// SPDX-License-Identifier: MIT
// What dtool-host says of files and disks.
#include "ssh/host/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/disk_steps.h"
#include "tests/unit/interruptions.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

/// A pipe.
struct Ends {
  Ends() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    out = Descriptor(ends[0]);
    in = Descriptor(ends[1]);
  }

  Descriptor in;   ///< to write to
  Descriptor out;  ///< to read from
};

/// The sentence of the std::runtime_error that a call throws; empty if it throws none.
std::string error_of(auto call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// The rights that a file or folder was made with.
mode_t rights_of(const std::string& path) {
  struct stat found {};
  ::stat(path.c_str(), &found);
  return found.st_mode & 07777U;
}

/// New files and folders get all the rights that they are made with.
struct NoMask {
  NoMask() : before(::umask(0)) {}
  ~NoMask() { ::umask(before); }
  NoMask(const NoMask&) = delete;
  NoMask& operator=(const NoMask&) = delete;

  mode_t before;
};

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

TEST(WriteWithHoles, EachBlockOfZerosIsAHoleHoweverThePiecesFall) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::string(4096, '\0') + std::string(4096, 'x');
  for (const std::size_t piece : {4096UL, 8192UL, 4 * 4096UL + 1024, 10'000'000UL}) {
    const auto [bytes, room] = written(text, piece);
    EXPECT_TRUE(bytes == text) << piece;
    EXPECT_LT(room, 600'000U) << piece;
  }
}

TEST(WriteWithHoles, WhatCanHaveNoneGetsTheZeros) {
  Ends pipe;
  const std::string zeros(8192, '\0');
  write_with_holes(pipe.in.get(), zeros);
  end_hole(pipe.in.get());
  EXPECT_TRUE(read_some(pipe.out.get()) == zeros);
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.is_open()) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_THROW(write_with_holes(full.get(), zeros), std::runtime_error);
}

TEST(EndHole, MakesTheFileAsLongAsItsPlaceSaysAndChangesNoByte) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "file";
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  end_hole(file.get());
  EXPECT_EQ(read_file(path), "");
  ::lseek(file.get(), 1, SEEK_SET);
  end_hole(file.get());
  EXPECT_EQ(read_file(path), std::string(1, '\0'));
  write_all(file.get(), "xyz");
  end_hole(file.get());
  EXPECT_EQ(read_file(path), std::string(1, '\0') + "xyz");
  ::lseek(file.get(), 3, SEEK_SET);
  end_hole(file.get());
  EXPECT_EQ(read_file(path), std::string(1, '\0') + "xyz") << "it is never made shorter";
  const Descriptor unwritable(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::lseek(unwritable.get(), 10, SEEK_SET);
  EXPECT_THROW(end_hole(unwritable.get()), std::runtime_error);
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

TEST(ReadFile, ReadsInPiecesUpToItsMost) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.write("file", std::string(70'000, 'x'));
  for (const std::size_t most : {0UL, 16384UL, 17'000UL, 65'536UL})
    EXPECT_EQ(read_file(file, most)->size(), most);
  EXPECT_EQ(read_line(file).size(), 65'536U);
  EXPECT_EQ(read_line(folder.path() / "none"), "");
  EXPECT_EQ(read_line(folder.write("empty", "")), "");
}

TEST(ReadFile, AnEarlierInterruptionIsNotTakenForOne) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.write("file", "text");
  errno = EINTR;
  EXPECT_EQ(read_file(file), "text");
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  errno = EINTR;
  EXPECT_EQ(read_some(opened.get()), "text");
  errno = EINTR;
  EXPECT_EQ(read_some(opened.get()), std::nullopt);
}

TEST(ReadSome, GoesOnAfterAnInterruption) {
  Ends pipe;
  const tests::Interruptions interruptions;
  std::thread writer([&] {
    tests::Interruptions::await(20);
    write_all(pipe.in.get(), "x");
  });
  EXPECT_NO_THROW(EXPECT_EQ(read_some(pipe.out.get()), "x"));
  writer.join();
}

TEST(ReadSome, SaysWhyItCannot) {
  EXPECT_EQ(error_of([] { read_some(-1); }), "cannot read: Bad file descriptor");
  Ends pipe;
  pipe.in = Descriptor();
  EXPECT_EQ(read_some(pipe.out.get()), std::nullopt);
}

TEST(WriteAll, GoesOnAfterAnInterruption) {
  Ends pipe;
  const std::string text(200'000, 'x');  // more than fits in
  std::string got;
  {
    const tests::Interruptions interruptions;
    std::thread reader([&] {
      tests::Interruptions::await(20);
      while (got.size() < text.size()) {
        const auto some = read_some(pipe.out.get());
        if (!some) break;
        got += *some;
      }
      pipe.out = Descriptor();
    });
    EXPECT_NO_THROW(write_all(pipe.in.get(), text));
    pipe.in = Descriptor();
    reader.join();
  }
  EXPECT_TRUE(got == text) << got.size();
}

TEST(WriteAll, SaysWhyItCannot) {
  EXPECT_EQ(error_of([] { write_all(-1, "x"); }), "cannot write: Bad file descriptor");
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
  EXPECT_EQ(error_of([] { flush_to_disk(-1, "file"); }),
            "cannot write file to the disk: Bad file descriptor");
}

[[noreturn]] void flush_where_it_fails_with(unsigned error) {
  tests::refuse_call(SYS_fsync, error);
  const tests::TemporaryFolder folder;
  const Descriptor file(::open((folder.path() / "file").c_str(), O_WRONLY | O_CREAT, 0600));
  ::_exit(error_of([&] { flush_to_disk(file.get(), "file"); }).empty() ? 0 : 1);
}

TEST(FlushToDisk, IsNotNeededWhereTheFileSystemKnowsNoSuchThing) {
  for (const unsigned error : {EINVAL, ENOSYS, EROFS})
    EXPECT_EXIT(flush_where_it_fails_with(error), testing::ExitedWithCode(0), "") << error;
  for (const unsigned error : {EIO, ENOSPC})
    EXPECT_EXIT(flush_where_it_fails_with(error), testing::ExitedWithCode(1), "") << error;
}

TEST(FlushDiskOf, FlushesAllOrSaysWhyNot) {
  const tests::TemporaryFolder folder;
  const tests::DiskSteps steps;
  flush_disk_of(folder.path());
  EXPECT_EQ(steps.text(), "flush all\n");
  const std::string none = folder.path() / "none";
  EXPECT_EQ(error_of([&] { flush_disk_of(none); }),
            "cannot read " + none + ": No such file or directory");
}

TEST(WriteFile, HasItsNameOnceItsBytesAreOnTheDisk) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.write("file", "a longer text of before");
  const NoMask mask;
  for (const auto write : {write_file, write_over_reserved}) {
    const tests::DiskSteps steps;
    write(file, "text");
    EXPECT_TRUE(steps.are_flushed_before("/file.new", "name ", "/file.new")) << steps.text();
    EXPECT_EQ(read_file(file), "text");
    EXPECT_FALSE(exists(file + ".new"));
    EXPECT_EQ(rights_of(file), 0666U);
  }
}

TEST(WriteFile, OverReservedBytesLeavesThoseBehindItsOwn) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path() / "file";
  folder.write("file.new", "123456");
  write_over_reserved(file, "text");
  EXPECT_EQ(read_file(file), "text56");
  folder.write("file.new", "123456");
  write_file(file, "text");
  EXPECT_EQ(read_file(file), "text");
}

TEST(WriteFile, SaysWhyItCannot) {
  const tests::TemporaryFolder folder;
  folder.write("folder/inside");
  for (const auto write : {write_file, write_over_reserved}) {
    const std::string none = folder.path() / "none/file";
    EXPECT_EQ(error_of([&] { write(none, "text"); }),
              "cannot write " + none + ".new: No such file or directory");
    const std::string taken = folder.path() / "folder";
    EXPECT_EQ(error_of([&] { write(taken, "text"); }),
              "cannot write " + taken + ": Is a directory");
  }
}

TEST(WriteInPlace, WritesOverTheFileAndAppendToBehindIt) {
  const tests::TemporaryFolder folder;
  const NoMask mask;
  const std::string file = folder.path() / "file";
  EXPECT_TRUE(append_to(file, "a longer "));
  EXPECT_TRUE(append_to(file, "text"));
  EXPECT_EQ(read_file(file), "a longer text");
  EXPECT_EQ(rights_of(file), 0666U);
  EXPECT_TRUE(write_in_place(file, "short"));
  EXPECT_EQ(read_file(file), "short");
}

TEST(WriteInPlace, TellsWhetherItWorked) {
  const tests::TemporaryFolder folder;
  for (const auto write : {write_in_place, append_to}) {
    EXPECT_FALSE(write(folder.path() / "none/file", "text"));
    EXPECT_FALSE(write(folder.path() / "none/file", ""));
    EXPECT_FALSE(write(folder.path(), "text"));
    EXPECT_FALSE(exists("/dev/full") && write("/dev/full", "text"));
  }
}

TEST(OwnersAlone, HaveTheRightsWhileItLives) {
  const tests::TemporaryFolder folder;
  const NoMask mask;
  {
    const OwnersAlone owners;
    write_file(folder.path() / "own", "");
  }
  write_file(folder.path() / "anyones", "");
  EXPECT_EQ(rights_of(folder.path() / "own"), 0600U);
  EXPECT_EQ(rights_of(folder.path() / "anyones"), 0666U);
}

/// How many descriptors are open here.
std::size_t count_open() {
  return list_folder("/proc/self/fd").size();
}

TEST(Descriptor, ClosesItselfOnce) {
  const std::size_t before = count_open();
  {
    Descriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Descriptor other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(count_open(), before + 2);
    other = std::move(one);
    EXPECT_FALSE(one.is_open());
    EXPECT_EQ(one.get(), -1);
    EXPECT_EQ(count_open(), before + 1);
    Descriptor& itself = other;
    other = std::move(itself);
    EXPECT_TRUE(other.is_open());
    EXPECT_EQ(count_open(), before + 1);
  }
  EXPECT_EQ(count_open(), before);
}

TEST(Descriptor, ThatIsClosedLeavesTheReasonAsItWas) {
  errno = EWOULDBLOCK;
  {
    Descriptor closed;
    closed = Descriptor();
  }
  EXPECT_EQ(errno, EWOULDBLOCK);
}

TEST(ListFolder, HasItsNames) {
  const tests::TemporaryFolder folder;
  folder.write("one");
  folder.write(".two/three");
  folder.write("...");
  auto names = list_folder(folder.path());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"...", ".two", "one"}));
  const Descriptor opened(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  errno = EIO;
  auto read = read_folder(opened);
  ASSERT_TRUE(read);
  std::ranges::sort(*read);
  EXPECT_EQ(*read, names);
  EXPECT_TRUE(list_folder(folder.path() / "none").empty());
}

TEST(ReadFolder, IsNothingForAFileWhichStaysAsItIs) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("file", "text");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::size_t before = count_open();
  EXPECT_EQ(read_folder(file), std::nullopt);
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_EQ(count_open(), before);
  EXPECT_EQ(read_some(file.get()), "text");
  EXPECT_EQ(read_folder(Descriptor()), std::nullopt);
}

TEST(ReadFolder, IsNothingIfItCannotBeReadToItsEnd) {
  EXPECT_EXIT(
      {
        const tests::TemporaryFolder folder;
        const Descriptor opened(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        tests::refuse_call(SYS_getdents64, EIO);
        ::_exit(!read_folder(opened) && errno == EIO ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Exists, WhateverHasThatName) {
  const tests::TemporaryFolder folder;
  folder.write("file");
  std::filesystem::create_symlink("nowhere", folder.path() / "link");
  EXPECT_TRUE(host::exists(folder.path()));
  EXPECT_TRUE(host::exists(folder.path() / "file"));
  EXPECT_TRUE(host::exists(folder.path() / "link"));
  EXPECT_FALSE(host::exists(folder.path() / "nowhere"));
  EXPECT_TRUE(is_folder(folder.path()));
  EXPECT_FALSE(is_folder(folder.path() / "file"));
  EXPECT_FALSE(is_folder(folder.path() / "nowhere"));
}

TEST(AgeOf, CountsFromTheLastWriting) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.write("file");
  const time_t then = std::time(nullptr) - 1000;
  const std::array<timespec, 2> times{timespec{1, 0}, {then, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times.data(), 0), 0);
  const auto age = age_of(file);
  ASSERT_TRUE(age);
  EXPECT_GE(*age, 1000);
  EXPECT_LE(*age, std::time(nullptr) - then);
  EXPECT_EQ(change_of(file), then);
  EXPECT_EQ(age_of(folder.path() / "none"), std::nullopt);
  EXPECT_EQ(change_of(folder.path() / "none"), std::nullopt);
}

TEST(FolderOf, IsWhatStandsBeforeTheLastSlash) {
  for (const auto& [path, folder] : {std::pair{"a/b/c", "a/b"},
                                     {"/a/b", "/a"},
                                     {"b/a", "b"},
                                     {"/a", "/"},
                                     {"/", "/"},
                                     {"a", "."},
                                     {"", "."}})
    EXPECT_EQ(folder_of(path), folder) << path;
}

TEST(ExpandHome, ConcernsATildeAlone) {
  const tests::TemporaryVariable home("HOME", "/home/me");
  for (const auto& [path, expanded] : {std::pair{"~", "/home/me"},
                                       {"~/a/b", "/home/me/a/b"},
                                       {"~you/a", "~you/a"},
                                       {"a/~/b", "a/~/b"},
                                       {"a~/b", "a~/b"},
                                       {"/a", "/a"},
                                       {"", ""}})
    EXPECT_EQ(expand_home(path), expanded) << path;
  ::unsetenv("HOME");
  EXPECT_EQ(expand_home("~/a"), "/a");
}

TEST(FreeInodes, AreCountedWhereTheDiskHasALimit) {
  struct statvfs disk {};
  EXPECT_EQ(free_inodes(disk), std::nullopt);
  disk.f_files = 1;
  EXPECT_EQ(free_inodes(disk), 0U);
  disk.f_files = 100;
  disk.f_ffree = 50;
  disk.f_favail = 40;
  EXPECT_EQ(free_inodes(disk), 40U);
}

TEST(LackOfRoom, IsOfBytesUnlessTheInodesAreKnownToBeUsedUp) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(guess_lack_of_room(folder.path()), "is the disk full?");
  EXPECT_EQ(guess_lack_of_room(folder.path() / "none"), "is the disk full?");
  EXPECT_EQ(guess_lack_of_room("/proc"), "is the disk full?") << "it has no such limit";
}

constexpr int kCannotMount = 98;

/// Gives this process mounts of its own, and ends it if it may not have them.
void mount_apart(const char* kind, const std::string& from, const std::string& to,
                 unsigned long flags, const char* options) {
  const bool is_apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  if (!is_apart || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(from.c_str(), to.c_str(), kind, flags, options) != 0)
    ::_exit(kCannotMount);
}

bool ended_well_or_could_not_mount(int status) {
  return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kCannotMount);
}

TEST(LackOfRoom, IsOfInodesWhereNoneIsLeft) {
  const tests::TemporaryFolder folder;
  EXPECT_EXIT(
      {
        // One is of the folder itself.
        mount_apart("tmpfs", "tmpfs", folder.path(), 0, "nr_inodes=2,size=1m");
        const bool has_one = guess_lack_of_room(folder.path()) == "is the disk full?";
        write_in_place(folder.path() / "file", "");
        const bool has_none =
            guess_lack_of_room(folder.path()).starts_with("its disk has no inodes");
        ::_exit(has_one && has_none ? 0 : 1);
      },
      ended_well_or_could_not_mount, "");
}

bool is_mount_at(const std::string& path) {
  return is_mount(Descriptor(::open(path.c_str(), O_PATH | O_CLOEXEC)).get());
}

TEST(IsMount, IsToldByTheKernelAlsoOnTheSameDisk) {
  const tests::TemporaryFolder folder;
  folder.write("here/file");
  folder.write("there/file");
  EXPECT_FALSE(is_mount_at(folder.path() / "here"));
  EXPECT_TRUE(is_mount_at("/proc"));
  EXPECT_EXIT(
      {
        mount_apart(nullptr, folder.path() / "here", folder.path() / "there", MS_BIND, nullptr);
        ::_exit(is_mount_at(folder.path() / "there") && !is_mount_at(folder.path() / "here") ? 0
                                                                                             : 1);
      },
      ended_well_or_could_not_mount, "");
}

TEST(IsMount, IsSeenByItsDiskWhereTheKernelDoesNotTell) {
  const tests::TemporaryFolder folder;
  folder.write("here/file");
  EXPECT_EXIT(
      {
        tests::refuse_call(SYS_statx, ENOSYS);
        ::_exit(is_mount_at("/proc") && !is_mount_at(folder.path() / "here") && !is_mount(-1) ? 0
                                                                                              : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(LockFile, IsHeldUntilItIsClosed) {
  const tests::TemporaryFolder folder;
  const NoMask mask;
  const std::string path = folder.path() / "lock";
  Descriptor lock = lock_file(path, 0);
  ASSERT_TRUE(lock.is_open());
  EXPECT_EQ(rights_of(path), 0666U);
  EXPECT_FALSE(lock_file(path, 0).is_open());
  EXPECT_EQ(errno, EWOULDBLOCK);
  lock = Descriptor();
  EXPECT_TRUE(lock_file(path, 0).is_open());
}

TEST(LockFile, IsWaitedForAsLongAsIsSaid) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "lock";
  const Descriptor lock = lock_file(path, 0);
  for (const int wait_ms : {41, 42}) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_FALSE(lock_file(path, wait_ms).is_open());
    EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(wait_ms));
  }
}

TEST(LockFile, SaysWhyItCannotBeMade) {
  const tests::TemporaryFolder folder;
  EXPECT_FALSE(lock_file(folder.path() / "none/lock", 0).is_open());
  EXPECT_EQ(errno, ENOENT);
  std::filesystem::create_symlink("file", folder.path() / "link");
  EXPECT_FALSE(lock_file(folder.path() / "link", 0).is_open());
  EXPECT_EQ(errno, ELOOP);
}

TEST(LockFile, IsNotWaitedForWhereThereAreNoLocks) {
  EXPECT_EXIT(
      {
        const tests::TemporaryFolder folder;
        tests::refuse_call(SYS_flock, ENOLCK);
        const Descriptor lock = lock_file(folder.path() / "lock", std::numeric_limits<int>::max());
        ::_exit(!lock.is_open() && errno == ENOLCK ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
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
  const NoMask mask;
  EXPECT_TRUE(make_folder(base + "/anyones"));
  EXPECT_EQ(rights_of(base + "/anyones"), 0777U);
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
