// SPDX-License-Identifier: MIT
// The process that puts the lines of ranks into a log: what it hears, where it goes on after
// another one, and what it does while there is no room.
#include "ssh/host/session/rank_logs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <new>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

TEST(PauseOfMerging, GrowsWhileNothingComesAndIsNoneInAFlood) {
  EXPECT_EQ(pause_after(0, 20ms), 40ms);
  EXPECT_EQ(pause_after(0, 40ms), 80ms);
  EXPECT_EQ(pause_after(0, 80ms), 100ms);
  EXPECT_EQ(pause_after(0, 0ms), 20ms);
  EXPECT_EQ(pause_after(1, 100ms), 20ms);
  EXPECT_EQ(pause_after(65'535, 20ms), 20ms);
  EXPECT_EQ(pause_after(65'536, 20ms), 0ms);
}

TEST(MergeProgress, IsWhatWasNoted) {
  MergeProgress progress({10, 20, 30, 40, 50, 60, 70});
  for (std::size_t rank = 0; rank < 7; ++rank) EXPECT_EQ(progress.offset(rank), 10 * (rank + 1));
  EXPECT_EQ(progress.open_write().size, 0U);
  EXPECT_FALSE(progress.is_complete());
  progress.begin({2, 30, 400, 50});
  const MergeProgress::Write write = progress.open_write();
  EXPECT_EQ(write.rank, 2U);
  EXPECT_EQ(write.offset, 30U);
  EXPECT_EQ(write.log_size, 400U);
  EXPECT_EQ(write.size, 50U);
  progress.end(2, 35);
  EXPECT_EQ(progress.open_write().size, 0U);
  EXPECT_EQ(progress.offset(1), 20U);
  EXPECT_EQ(progress.offset(2), 35U);
  EXPECT_EQ(progress.offset(3), 40U);
  progress.complete();
  EXPECT_TRUE(progress.is_complete());
}

std::size_t count_shared_memory() {
  const std::string maps = read_file("/proc/self/maps").value_or("");
  std::size_t count = 0;
  for (std::size_t at = 0; (at = maps.find("/dev/zero", at)) != maps.npos; ++at) ++count;
  return count;
}

TEST(MergeProgress, GivesItsMemoryBack) {
  const std::size_t before = count_shared_memory();
  { const MergeProgress progress({0}); }
  EXPECT_EQ(count_shared_memory(), before);
}

TEST(MergeProgress, WithoutMemoryThereIsNone) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    try {
      const MergeProgress progress({0});
    } catch (const std::bad_alloc&) {
      ::_exit(42);
    }
    ::_exit(0);
  }
  EXPECT_EQ(wait_for_child(child), 42);
}

class MergingTest : public testing::Test {
 protected:
  ~MergingTest() override {
    if (merging_ > 0) ::kill(merging_, SIGKILL);
    if (merging_ > 0) wait_for_child(merging_);
  }

  /// Merges the ranks 0 and on, whose lines are in r0, r1, …, into `log`. Their process is this
  /// one.
  void start(const std::vector<std::uint64_t>& offsets, Descriptor log) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    channel_ = Descriptor(ends[0]);
    Descriptor other(ends[1]);
    if (!progress_) progress_.emplace(offsets);
    for (const int each : first_words_) say(each);
    merging_ = ::fork();
    if (merging_ != 0) return;
    channel_ = Descriptor();
    std::vector<MergedRank> sources;
    std::vector<int> ranks;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      MergedRank source;
      source.file = Descriptor(::open(file(i).c_str(), O_RDONLY | O_CLOEXEC));
      source.pid = process_.pid;
      source.start = process_.start;
      source.offset = offsets[i];
      sources.push_back(std::move(source));
      ranks.push_back(static_cast<int>(i));
    }
    merge_lines(std::move(sources), ranks, std::move(log), std::move(other), *progress_);
    ::_exit(0);
  }

  void start(const std::vector<std::uint64_t>& offsets) {
    start(offsets, Descriptor(::open(log().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666)));
  }

  void say(int message) const { ::send(channel_.get(), &message, sizeof message, MSG_NOSIGNAL); }

  /// Whether it has an answer within ten seconds.
  bool answers() const {
    pollfd answered{channel_.get(), POLLIN, 0};
    int answer = 0;
    return ::poll(&answered, 1, 10'000) == 1 &&
           ::recv(channel_.get(), &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer &&
           answer == kSettle;
  }

  bool ends() {
    const bool has_ended = wait_for_child(merging_, 20s) == 0;
    if (has_ended) merging_ = -1;
    return has_ended;
  }

  bool comes(const std::function<bool()>& holds) const {
    for (int i = 0; i < 2000 && !holds(); ++i) host::pause(5ms);
    return holds();
  }

  std::string file(std::size_t rank) const { return folder_.path() / ("r" + std::to_string(rank)); }
  void write(std::size_t rank, const std::string& text) const { append_to(file(rank), text); }
  std::string log() const { return folder_.path() / "log"; }
  std::string merged() const { return read_file(log(), 16U << 20U).value_or(""); }

  const tests::TemporaryFolder folder_;
  Process process_ = find_process(::getpid()).value();
  std::vector<int> first_words_;  ///< said before it begins
  std::optional<MergeProgress> progress_;
  Descriptor channel_;
  pid_t merging_ = -1;
};

TEST_F(MergingTest, PutsWholeLinesThereUntilAllHaveEnded) {
  write(0, "one\nha");
  write(1, "");
  start({0, 0});
  EXPECT_TRUE(comes([&] { return progress_->offset(0) == 4; })) << "half a line waits";
  write(0, "lf\n");
  EXPECT_TRUE(comes([&] { return merged() == "r0: one\nr0: half\n"; }));
  EXPECT_TRUE(comes([&] { return progress_->offset(0) == 9; }));
  write(1, "a");
  say(0);
  say(100'000'000);  // no rank
  say(1);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: one\nr0: half\nr1: a\n");
  EXPECT_TRUE(progress_->is_complete());
  EXPECT_EQ(progress_->open_write().size, 0U);
  EXPECT_FALSE(answers()) << "it was not asked";
}

TEST_F(MergingTest, BeginsWhereItIsTold) {
  write(0, "old\nnew\n");
  start({4});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: new\n");
}

TEST_F(MergingTest, AnswersOnceAllThatWasWrittenIsThere) {
  const std::string line = std::string(99, 'x') + "\n";
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += line;
  write(0, text);
  first_words_ = {kSettle};
  start({0});
  EXPECT_TRUE(answers());
  EXPECT_EQ(merged().size(), 20'000 * (line.size() + 4));
  write(0, "one more\n");
  say(kSettle);
  EXPECT_TRUE(answers());
  EXPECT_TRUE(merged().ends_with("\nr0: one more\n"));
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_FALSE(answers()) << "once for each question";
}

TEST_F(MergingTest, DoesNotAnswerBeforeTheLastLineIsThere) {
  constexpr std::size_t kLines = 20'000;
  std::string text;
  for (std::size_t i = 0; i < kLines; ++i) text += std::string(99, 'x') + "\n";
  write(0, text);
  // What it writes lies in a pipe, which takes no more until somebody reads.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Descriptor reading(ends[0]);
  first_words_ = {kSettle};
  start({0}, Descriptor(ends[1]));
  std::size_t merged = 0;
  while (merged < kLines * 104) {
    pollfd answered{channel_.get(), POLLIN, 0};
    if (::poll(&answered, 1, 0) == 1) break;
    const auto bytes = read_some(reading.get());
    ASSERT_TRUE(bytes);
    merged += bytes->size();
  }
  int more = 0;
  ::ioctl(reading.get(), FIONREAD, &more);
  EXPECT_EQ(merged + static_cast<std::size_t>(more), kLines * 104);
  EXPECT_TRUE(answers());
}

TEST_F(MergingTest, ARankWithoutAFileIsNotWaitedFor) {
  write(1, "one\n");
  start({0, 0});
  say(kSettle);
  EXPECT_TRUE(answers());
  EXPECT_EQ(merged(), "r1: one\n");
  say(0);
  say(1);
  EXPECT_TRUE(ends());
}

TEST_F(MergingTest, LooksForTheProcessesOnceNobodyTellsOfThem) {
  write(0, "one\n");
  process_.start += 1;  // another process's
  start({0});
  EXPECT_TRUE(comes([&] { return merged() == "r0: one\n"; }));
  write(0, "two\n");
  EXPECT_TRUE(comes([&] { return merged() == "r0: one\nr0: two\n"; }));
  channel_ = Descriptor();
  EXPECT_TRUE(ends());
}

TEST_F(MergingTest, BelievesWhatItWasToldOfAProcessThatIsStillThere) {
  write(0, "no end");
  first_words_ = {0};
  start({0});
  channel_ = Descriptor();
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: no end\n");
}

/// One that was killed has left word of a write.
class MergingGoesOn : public MergingTest {
 protected:
  void leave(const std::string& log_text, const MergeProgress::Write& write,
             const std::vector<std::uint64_t>& offsets) {
    folder_.write("log", log_text);
    progress_.emplace(offsets);
    progress_->begin(write);
  }
};

TEST_F(MergingGoesOn, BehindAWriteThatWasDone) {
  write(0, "one\nha");
  leave("dtool: begins\nr0: one\n", {0, 0, 14, 8}, {0});
  start({0});
  EXPECT_TRUE(comes([&] { return progress_->offset(0) == 4; })) << "half a line waits";
  EXPECT_EQ(progress_->open_write().size, 0U);
  write(0, "lf\nthree\n");
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "dtool: begins\nr0: one\nr0: half\nr0: three\n");
  EXPECT_EQ(progress_->offset(0), 15U);
}

TEST_F(MergingGoesOn, BehindAWriteThatWasDoneWhereMoreHasCome) {
  write(0, "one\ntwo\n");
  leave("r0: one\n", {0, 0, 0, 8}, {0});
  start({0});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: one\nr0: two\n");
}

TEST_F(MergingGoesOn, WithinAWrite) {
  write(0, "one\ntwo\n");
  leave("r0: on", {0, 0, 0, 16}, {0});
  start({0});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: one\nr0: two\n");
}

TEST_F(MergingGoesOn, WithAWriteThatHadNotBegun) {
  for (const std::string before : {"dtool: another's line\n", "r0: one\n"}) {
    std::filesystem::remove(file(0));
    write(0, "one\n");
    leave(before, {0, 0, before.size(), 8}, {0});
    start({0});
    say(0);
    EXPECT_TRUE(ends());
    EXPECT_EQ(merged(), before + "r0: one\n");
  }
}

TEST_F(MergingGoesOn, WithAWriteInWhosePlaceIsAnothersLine) {
  write(0, "one\n");
  leave("dtool: another's line\n", {0, 0, 0, 8}, {0});
  start({0});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "dtool: another's line\nr0: one\n");
}

TEST_F(MergingGoesOn, WithoutAWriteThatIsLongDone) {
  write(0, "one\none\n");
  leave("r0: one\n", {0, 0, 0, 8}, {4});
  start({4});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: one\nr0: one\n") << "the second time it is another line";
}

TEST_F(MergingGoesOn, WithoutAWriteOfARankThatIsNotThere) {
  write(0, "one\n");
  leave("", {100'000'000, 0, 0, 8}, {0});
  start({0});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: one\n");
}

TEST_F(MergingGoesOn, WhereTheRanksFileWasCut) {
  write(0, "one\n");
  leave("r0: one\nr0: two\n", {0, 0, 0, 16}, {0});
  start({0});
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(merged(), "r0: one\nr0: two\n");
}

TEST_F(MergingTest, WaitsForRoomAndLosesNothing) {
  std::array<int, 2> ends_of_log{};
  ASSERT_EQ(::pipe2(ends_of_log.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const Descriptor reader(ends_of_log[0]);
  std::string wanted;
  for (int i = 0; i < 30'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    wanted += "r0: " + line;
    write(0, line);
  }
  write(1, "one\n");
  wanted += "r1: one\n";
  start({0, 0}, Descriptor(ends_of_log[1]));
  say(0);
  say(1);
  EXPECT_TRUE(comes([&] { return progress_->open_write().size > 100'000; }));
  EXPECT_FALSE(wait_for_child(merging_, 300ms)) << "there is no room";
  std::string all;
  EXPECT_TRUE(comes([&] {
    std::array<char, 4096> piece{};
    for (ssize_t size = 0; (size = ::read(reader.get(), piece.data(), piece.size())) > 0;)
      all.append(piece.data(), static_cast<std::size_t>(size));
    return all.size() >= wanted.size();
  }));
  EXPECT_TRUE(ends());
  std::ranges::sort(all);
  std::ranges::sort(wanted);
  EXPECT_TRUE(all == wanted);
}

TEST_F(MergingTest, GivesUpOnceAllHaveEndedAndTheDiskStaysFull) {
  write(0, "one\n");
  start({0}, Descriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  EXPECT_TRUE(comes([&] { return progress_->open_write().size == 8; }));
  EXPECT_EQ(progress_->offset(0), 0U);
  say(0);
  EXPECT_TRUE(ends());
  EXPECT_TRUE(progress_->is_complete()) << "no other one is to try";
}

}  // namespace
}  // namespace dtool::host
