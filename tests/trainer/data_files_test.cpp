// SPDX-License-Identifier: MIT
// checksum, expand_path, folder_lock, curl, download, data_files and transfer_progress: all that
// needs no server (tests/trainer/*download*.sh have one).
#include "trainer/data/data_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "tests/trainer/own_folder.h"
#include "tests/unit/disk_steps.h"
#include "trainer/data/download.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr const char* kSumOfAbc =  // the example of FIPS 180-2
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class DataFiles : public OwnFolder {
 protected:
  fs::path write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  fs::path write_gzip(const std::string& name, const std::string& content,
                      const char* mode = "wb9") const {
    gzFile stream = gzopen((folder_ / name).c_str(), mode);
    gzwrite(stream, content.data(), static_cast<unsigned>(content.size()));
    gzclose(stream);
    return folder_ / name;
  }

  std::vector<fs::path> provide(const std::vector<DataFile>& files, const DataPlace& place) {
    return provide_files(files, place, process_environment, Waits::told, progress_);
  }

  TransferProgress progress_{""};
};

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string mistake(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& problem) {
    return problem.what();
  }
  return "no mistake";
}

Environment environment(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

std::string expand(const std::string& text) {
  return expand_path("data.path", text,
                     environment({{"HOME", "/home/me"}, {"TMPDIR", "/tmp/job 7"}, {"EMPTY", ""}}));
}

}  // namespace

TEST_F(DataFiles, AChecksumIsOfTheBytesOrOfWhatTheyUnpackTo) {
  const auto plain = write("plain", "abc");
  const auto packed = write_gzip("packed.gz", "abc");
  const auto packed_otherwise = write_gzip("other.gz", "abc", "wb0");
  EXPECT_EQ(sha256_of(plain, Counted::bytes), kSumOfAbc);
  EXPECT_EQ(sha256_of(plain, Counted::content), kSumOfAbc);
  EXPECT_EQ(sha256_of(packed, Counted::content), kSumOfAbc);
  EXPECT_EQ(sha256_of(packed_otherwise, Counted::content), kSumOfAbc);
  EXPECT_NE(sha256_of(packed, Counted::bytes), kSumOfAbc);
}

TEST_F(DataFiles, AChecksumOfManyPiecesIsTheWholes) {
  // A million times `a`, from the same standard, is less than a buffer; three buffers and a bit are
  // not: their sum is sha256sum's.
  EXPECT_EQ(sha256_of(write("million", std::string(1'000'000, 'a')), Counted::bytes),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  const std::string content(3 * (1 << 20) + 17, 'b');
  const auto plain = write("big", content);
  EXPECT_EQ(sha256_of(plain, Counted::bytes), sha256_of(plain, Counted::content));
  EXPECT_EQ(sha256_of(plain, Counted::bytes),
            sha256_of(write_gzip("big.gz", content), Counted::content));
}

TEST_F(DataFiles, AGzipFileThatIsCutShortOrDamagedHasNoContent) {
  std::string noise;
  for (int i = 0; i < 50'000; ++i) noise += static_cast<char>(i * i >> 3);
  const auto file = write_gzip("a.gz", noise);
  const std::string whole = read(file);
  for (const std::size_t size : {whole.size() / 2, whole.size() - 1, whole.size() - 8}) {
    EXPECT_ANY_THROW(sha256_of(write("cut.gz", whole.substr(0, size)), Counted::content)) << size;
  }
  std::string damaged = whole;
  damaged[whole.size() / 2] ^= 1;
  EXPECT_ANY_THROW(sha256_of(write("damaged.gz", damaged), Counted::content));
  EXPECT_ANY_THROW(sha256_of(folder_ / "nowhere", Counted::content));
  EXPECT_ANY_THROW(sha256_of(folder_ / "nowhere", Counted::bytes));
  EXPECT_ANY_THROW(sha256_of(folder_, Counted::bytes)) << "a folder has no bytes";
}

TEST(ExpandPath, HomeAndVariablesAreReplaced) {
  EXPECT_EQ(expand("~"), "/home/me");
  EXPECT_EQ(expand("~/data"), "/home/me/data");
  EXPECT_EQ(expand("$TMPDIR/mnist"), "/tmp/job 7/mnist");
  EXPECT_EQ(expand("/a/${TMPDIR}b"), "/a//tmp/job 7b");
  EXPECT_EQ(expand("/a~/b"), "/a~/b");
  EXPECT_EQ(expand("/cost$$5"), "/cost$5");
  EXPECT_EQ(expand("plain/path"), "plain/path");
}

TEST(ExpandPath, AVariableThatIsNotSetIsNamed) {
  EXPECT_EQ(mistake([] { expand("$SLURM_TMPDIR/x"); }),
            "data.path '$SLURM_TMPDIR/x': the environment variable SLURM_TMPDIR is not set");
  EXPECT_EQ(mistake([] { expand("${EMPTY}/x"); }),
            "data.path '${EMPTY}/x': the environment variable EMPTY is empty");
  for (const char* text : {"$", "a/$/b", "${}", "${TMPDIR", "${TMPDIR-x}", "~o", "~other/x"}) {
    const std::string said = mistake([&] { expand(text); });
    const std::string why = text[0] == '~'                 ? "another user's home"
                            : std::string(text).size() > 5 ? "a ${ without its }"
                                                           : "a $ without a variable's name";
    EXPECT_EQ(said, "data.path '" + std::string(text) + "': " + why);
  }
}

TEST_F(DataFiles, ALockIsHeldUntilItsHolderIsGoneHoweverItEnds) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder_, [](const std::string&) {});
    [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::string holder;
  const FolderLock lock(folder_, [&](const std::string& who) {
    holder = who;
    kill(child, SIGKILL);
  });
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(holder.starts_with("process " + std::to_string(child) + " on ")) << holder;
}

TEST_F(DataFiles, AHolderThatGivesNoSignOfLifeIsNotWaitedForForEver) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder_, [](const std::string&) {}, {1min, 10ms});
    [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto said = mistake([&] {
    FolderLock(folder_, [&](auto) { kill(child, SIGSTOP); }, {300ms, 1s});
  });
  EXPECT_NE(said.find("has given no sign of life"), std::string::npos) << said;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(LastSign, AHolderIsSilentForAsLongAsItsFileIsUntouched) {
  const LastSign::Clock::time_point begin{};
  LastSign last({5, 7}, begin);
  EXPECT_EQ(last.silence({5, 7}, begin), 0s);
  EXPECT_EQ(last.silence({5, 7}, begin + 3s), 3s);
  EXPECT_EQ(last.silence({5, 7}, begin + 9s), 9s);
  EXPECT_EQ(last.silence({5, 8}, begin + 10s), 0s) << "another nanosecond";
  EXPECT_EQ(last.silence({5, 8}, begin + 14s), 4s);
  EXPECT_EQ(last.silence({4, 8}, begin + 15s), 0s) << "another second, though an earlier one";
  EXPECT_EQ(last.silence({4, 8}, begin + 16s), 1s);
}

TEST_F(DataFiles, AHolderTouchesItsFileAgainAndAgain) {
  const FolderLock lock(folder_, [](auto) {}, {1min, 1ms});
  const auto file = folder_ / ".dtool-lock";
  for (int beat = 0; beat < 3; ++beat) {
    const auto old = fs::last_write_time(file) - 1h;  // not every disk can hold any time
    fs::last_write_time(file, old);
    while (fs::last_write_time(file) == old) std::this_thread::yield();
  }
}

TEST_F(DataFiles, ALockFileHasNothingButTheNameOfItsHolderWhoseEndIsNotWaitedFor) {
  const auto file = write(".dtool-lock", std::string(400, 'x'));
  const FolderLock lock(folder_, [](auto) {}, {1min, 1h});
  char host[256] = "";
  gethostname(host, sizeof host);
  EXPECT_EQ(read(file), "process " + std::to_string(getpid()) + " on " + host);
}

TEST_F(DataFiles, AFolderThatCannotBeWrittenIsNamed) {
  EXPECT_EQ(
      mistake([&] { FolderLock(folder_ / "nowhere", [](auto) {}); }),
      "cannot write into '" + (folder_ / "nowhere").string() + "': No such file or directory");
}

TEST_F(DataFiles, ATransferGoesOnWhereTheFileEndsAndTellsHowFarItIs) {
  write("served", "abcdef");
  write("here", "abc");
  const std::string address = "file://" + (folder_ / "served").string();
  std::int64_t most = 0;
  std::optional<std::int64_t> whole;
  const auto observe = [&](std::int64_t here, std::optional<std::int64_t> total) {
    most = std::max(most, here);
    if (total) whole = total;
    return true;
  };
  const auto sent = run_curl({address, folder_ / "here", std::chrono::seconds(5)}, observe);
  EXPECT_EQ(sent.code, 0);
  EXPECT_EQ(sent.error, "");
  EXPECT_EQ(read(folder_ / "here"), "abcdef");
  EXPECT_EQ(most, 6);
  EXPECT_EQ(whole, 6);
}

TEST_F(DataFiles, ATransferFromTheBeginningMakesAFileForEverybodyAndClosesIt) {
  write("served", "abcdef");
  const CurlRequest request{"file://" + (folder_ / "served").string(), folder_ / "here", 5s};
  const int next = dup(STDERR_FILENO);
  close(next);
  std::int64_t last = 0;
  const mode_t before = umask(022);
  EXPECT_EQ(run_curl(request, [&](std::int64_t here, auto) { return (last = here) >= 0; }).code, 0);
  umask(before);
  EXPECT_EQ(last, 6);
  EXPECT_EQ(fs::status(folder_ / "here").permissions(), static_cast<fs::perms>(0644));
  const int now = dup(STDERR_FILENO);
  close(now);
  EXPECT_EQ(now, next) << "a file stays open";
}

/// As schedulers start processes.
TEST_F(DataFiles, FilesAreReadAndWrittenWhereStandardInputIsClosed) {
  write("served", "abc");
  const auto work = [&] {
    close(STDIN_FILENO);
    const CurlRequest request{"file://" + (folder_ / "served").string(), folder_ / "here", 5s};
    run_curl(request, [](auto, auto) { return true; });
    const bool is_read = sha256_of(folder_ / "here", Counted::content) == kSumOfAbc;
    name_when_whole(folder_ / "here", folder_ / "named");
    const FolderLock lock(folder_, [](auto) {});
    _exit(is_read && read(folder_ / "named") == "abc" ? 0 : 1);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

TEST_F(DataFiles, AFileThatDoesNotReachTheDiskGetsNoName) {
  write("part", "abc");
  dtool::tests::DiskSteps steps;
  steps.fail_flushes_of("part");
  const int next = dup(STDERR_FILENO);
  close(next);
  EXPECT_THROW(name_when_whole(folder_ / "part", folder_ / "a"), std::system_error);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  const int now = dup(STDERR_FILENO);
  close(now);
  EXPECT_EQ(now, next) << "a file stays open";
}

TEST_F(DataFiles, ATransferThatFailsMakesNoFileAndSaysWhy) {
  const auto observe = [](std::int64_t, std::optional<std::int64_t>) { return true; };
  const auto missing = run_curl(
      {"file://" + (folder_ / "nowhere").string(), folder_ / "here", std::chrono::seconds(5)},
      observe);
  EXPECT_EQ(missing.code, 37);
  EXPECT_NE(missing.error.find("nowhere"), std::string::npos) << missing.error;
  EXPECT_FALSE(fs::exists(folder_ / "here"));
  write("served", "abc");
  const auto unwritable = run_curl({"file://" + (folder_ / "served").string(),
                                    folder_ / "no folder" / "here", std::chrono::seconds(5)},
                                   observe);
  EXPECT_EQ(judge_attempt(unwritable.code, 0), Verdict::cannot_write);
  EXPECT_EQ(unwritable.error, "No such file or directory");
}

TEST_F(DataFiles, ATransferEndsWhenItsObserverHasEnoughOrFails) {
  write("served", "abc");
  const std::string address = "file://" + (folder_ / "served").string();
  const CurlRequest request{address, folder_ / "here", std::chrono::seconds(5)};
  EXPECT_EQ(run_curl(request, [](auto, auto) { return false; }).code, -1);
  const auto failing = [](auto, auto) -> bool { throw UsageError("full"); };
  EXPECT_EQ(mistake([&] { run_curl(request, failing); }), "full");
}

TEST(Download, WhatAnAttemptMeansDependsOnCurlAndServer) {
  EXPECT_EQ(judge_attempt(0, 200), Verdict::sent);
  for (const int status : {404, 403, 410, 401}) {
    EXPECT_EQ(judge_attempt(22, status), Verdict::next_mirror) << status;
  }
  for (const int status : {500, 502, 503, 429, 425, 408}) {
    EXPECT_EQ(judge_attempt(22, status), Verdict::try_again) << status;
  }
  EXPECT_EQ(judge_attempt(22, 416), Verdict::from_the_start);
  EXPECT_EQ(judge_attempt(33, 200), Verdict::from_the_start);
  EXPECT_EQ(judge_attempt(23, 200), Verdict::cannot_write);
  for (const int code : {6, 7, 18, 28, 52, 56}) {
    EXPECT_EQ(judge_attempt(code, 0), Verdict::try_again) << code;
  }
  for (const int code : {1, 3, 60, 127, -1}) {
    EXPECT_EQ(judge_attempt(code, 0), Verdict::next_mirror) << code;
  }
}

TEST(Download, AnAddressIsTheMirrorsAndTheNameQuoted) {
  EXPECT_EQ(address_of("http://a/b", "x.gz"), "http://a/b/x.gz");
  EXPECT_EQ(address_of("http://a/b/", "my file#1?.csv"), "http://a/b/my%20file%231%3F.csv");
  EXPECT_EQ(address_of("http://a", "az/AZ/09-._~"), "http://a/az/AZ/09-._~");
  EXPECT_EQ(address_of("http://a", "`{@[/:\xe9"), "http://a/%60%7B%40%5B/%3A%E9")
      << "the neighbours of letters and digits";
}

TEST_F(DataFiles, ADownloadThatEndedJustBeforeItsFileWasNamedIsNotFetchedAgain) {
  write("a.part", "abc");
  download({"a", kSumOfAbc}, {{"http://127.0.0.1:1"}}, folder_, progress_);
  EXPECT_EQ(read(folder_ / "a"), "abc");
  EXPECT_FALSE(fs::exists(folder_ / "a.part"));
}

TEST_F(DataFiles, FilesAreTakenPackedOrUnpacked) {
  write("a", "abc");
  write_gzip("b.gz", "abc");
  const std::vector<DataFile> files = {{{"a.gz", kSumOfAbc, Counted::content}},
                                       {{"b.gz", kSumOfAbc, Counted::content}}};
  EXPECT_EQ(provide(files, {.path = folder_}),
            (std::vector<fs::path>{folder_ / "a", folder_ / "b.gz"}));
}

TEST_F(DataFiles, AFileThatIsNotTheOneMeantIsNamedAndStays) {
  write("a", "mine");
  const std::vector<DataFile> files = {{{"a", kSumOfAbc}}};
  EXPECT_NE(mistake([&] { provide(files, {.path = folder_}); }).find("a is another file than was"),
            std::string::npos);
  EXPECT_EQ(read(folder_ / "a"), "mine");
}

TEST_F(DataFiles, AWholeFolderOfAnotherSetIsTakenAndABrokenOneNotFilled) {
  const std::vector<DataFile> files = {
      {{"a", kSumOfAbc, Counted::content}, Compared::when_others_are_missing},
      {{"b", kSumOfAbc, Counted::content}, Compared::when_others_are_missing}};
  write("a", "mine");
  const DataPlace place{.path = folder_, .mirrors = {{"http://127.0.0.1:1"}}};
  EXPECT_NE(mistake([&] { provide(files, place); }).find("is not downloaded"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "b"));
  write("b", "mine");
  EXPECT_EQ(provide(files, place).size(), 2u);
}

TEST_F(DataFiles, AFileThatIsAlwaysComparedDoesNotKeepOthersFromBeingFetched) {
  fs::create_directory(folder_ / "web");
  write("web/b", "abc");
  write("a", "mine");
  const std::vector<DataFile> files = {{{"a", kSumOfAbc}, Compared::always},
                                       {{"b", kSumOfAbc}, Compared::always}};
  const DataPlace place{.path = folder_, .mirrors = {{"file://" + folder_.string() + "/web"}}};
  EXPECT_TRUE(mistake([&] { provide(files, place); }).ends_with(std::string(", not ") + kSumOfAbc));
  EXPECT_EQ(read(folder_ / "b"), "abc");
}

/// Another process was first, with another set.
TEST_F(DataFiles, AFolderThatWasFilledMeanwhileIsTakenAsItIs) {
  const auto file = write(".dtool-lock", "");
  const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(descriptor, LOCK_EX), 0);
  std::thread holder([&] {
    std::this_thread::sleep_for(5ms);
    write("a", "mine");
    write("b", "mine");
    flock(descriptor, LOCK_UN);
  });
  const std::vector<DataFile> files = {
      {{"a", kSumOfAbc, Counted::content}, Compared::when_others_are_missing},
      {{"b", kSumOfAbc, Counted::content}, Compared::when_others_are_missing}};
  testing::internal::CaptureStdout();
  EXPECT_EQ(
      mistake([&] { provide(files, {.path = folder_, .mirrors = {{"http://127.0.0.1:1"}}}); }),
      "no mistake");
  testing::internal::GetCapturedStdout();
  holder.join();
  close(descriptor);
}

TEST_F(DataFiles, WhatIsMissingIsNamed) {
  EXPECT_EQ(mistake([&] {
              provide({{{"a", ""}}}, {.path = folder_});
            }),
            "no a in '" + folder_.string() + "'");
}

TEST_F(DataFiles, ACopyIsMadeOnceAndAgainWhenTheOriginalChanges) {
  write("a", "abc");
  const std::vector<DataFile> files = {{{"a", ""}}};
  const DataPlace place{.path = folder_, .copy_to = folder_ / "near/by"};
  EXPECT_EQ(provide(files, place), (std::vector<fs::path>{folder_ / "near/by/a"}));
  EXPECT_EQ(read(folder_ / "near/by/a"), "abc");

  // A copy that is left alone shows by what only the copy holds.
  const auto time = fs::last_write_time(folder_ / "a");
  write("near/by/a", "xyz");
  fs::last_write_time(folder_ / "near/by/a", time);
  fs::remove(folder_ / "near/by/.dtool-lock");
  provide(files, place);
  EXPECT_EQ(read(folder_ / "near/by/a"), "xyz");
  EXPECT_FALSE(fs::exists(folder_ / "near/by/.dtool-lock")) << "nothing is written there";

  write("a", "def");
  fs::last_write_time(folder_ / "a", time + 10s);
  provide(files, place);
  EXPECT_EQ(read(folder_ / "near/by/a"), "def");
  EXPECT_FALSE(fs::exists(folder_ / "near/by/a.part"));
}

TEST_F(DataFiles, ALockWithoutANameIsHeldByAnotherProcess) {
  const auto file = write(".dtool-lock", "");
  const int descriptor = open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(descriptor, LOCK_EX), 0);
  EXPECT_EQ(mistake([&] {
              FolderLock(folder_, [](auto) {}, {30ms, 1s});
            }),
            "another process holds " + file.string() + " and has given no sign of life for 0 s");
  const std::vector<DataFile> files = {{{"a", kSumOfAbc}}};
  const DataPlace place{.path = folder_, .mirrors = {{"file://" + folder_.string() + "/web"}}};
  fs::create_directory(folder_ / "web");
  write("web/a", "abc");
  for (const auto waits : {Waits::told, Waits::silent}) {
    fs::remove(folder_ / "a");
    ASSERT_EQ(flock(descriptor, LOCK_EX), 0);
    std::thread holder([&] {
      std::this_thread::sleep_for(5ms);
      flock(descriptor, LOCK_UN);
    });
    testing::internal::CaptureStdout();
    provide_files(files, place, process_environment, waits, progress_);
    const auto told = testing::internal::GetCapturedStdout();
    holder.join();
    EXPECT_EQ(told.find("waiting for another process, which fills '" + folder_.string() + "'\n"),
              waits == Waits::told ? 0 : std::string::npos)
        << told;
    EXPECT_EQ(read(folder_ / "a"), "abc");
  }
  close(descriptor);
}

TEST_F(DataFiles, AFolderOrACopyThatCannotBeMadeIsNamed) {
  write("a", "abc");
  const std::vector<DataFile> files = {{{"a", kSumOfAbc}}, {{"b", kSumOfAbc}}};
  EXPECT_EQ(mistake([&] {
              provide(files, {.path = folder_ / "a/sub", .mirrors = {{"http://127.0.0.1:1"}}});
            }),
            "data.path: cannot make '" + (folder_ / "a/sub").string() + "': Not a directory");
  fs::create_directories(folder_ / "near/a.part");
  const auto said =
      mistake([&] { provide({files[0]}, {.path = folder_, .copy_to = folder_ / "near"}); });
  EXPECT_TRUE(said.starts_with("cannot copy " + (folder_ / "a").string() + " to '" +
                               (folder_ / "near").string() + "': "))
      << said;
  EXPECT_TRUE(said.ends_with(" are free there")) << said;
}

TEST_F(DataFiles, ACopyOfLessThanTwoSecondsDifferenceIsOneAndAllCopiesCanBeWritten) {
  write("a", "abc");
  fs::permissions(folder_ / "a", fs::perms::owner_read);
  const DataPlace place{.path = folder_, .copy_to = folder_ / "near"};
  testing::internal::CaptureStdout();
  provide({{{"a", ""}}}, place);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "a: 3 bytes from " + folder_.string() + " in 0.0 s\n");
  const auto copy = folder_ / "near/a";
  EXPECT_NE(fs::status(copy).permissions() & fs::perms::owner_write, fs::perms::none);
  const auto time = fs::last_write_time(folder_ / "a");
  EXPECT_EQ(fs::last_write_time(copy), time);
  const auto stays_with = [&](const std::string& content, std::chrono::milliseconds later) {
    std::ofstream(copy) << content;
    fs::last_write_time(copy, time + later);
    testing::internal::CaptureStdout();
    provide({{{"a", ""}}}, place);
    testing::internal::GetCapturedStdout();
    return read(copy) == content;
  };
  EXPECT_TRUE(stays_with("xyz", 1999ms));
  EXPECT_TRUE(stays_with("xyz", -1999ms));
  EXPECT_FALSE(stays_with("xyz", 2000ms));
  EXPECT_FALSE(stays_with("xyz", -2000ms));
  EXPECT_FALSE(stays_with("xy", 0ms));
}
