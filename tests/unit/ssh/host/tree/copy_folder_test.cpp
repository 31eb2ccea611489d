// SPDX-License-Identifier: MIT
// What hosts of a copy that share a folder do to each other there.
#include "ssh/host/tree/copy_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"
#include "tests/unit/ssh/host/tree/host_beside.h"
#include "tests/unit/ssh/host/tree/parcels_here.h"

namespace dtool::host {
namespace {

class CopyFolderTest : public TakeParcelTest {};

void wait_for_size(const fs::path& file, std::uintmax_t size) {
  std::error_code missing;
  for (int i = 0; i < 10'000; ++i) {
    if (fs::exists(file, missing) && fs::file_size(file, missing) >= size) return;
    ::usleep(1000);
  }
  FAIL() << file << " does not become " << size << " bytes long";
}

TEST_F(CopyFolderTest, AHostThatLostItsLockCutsNothingFromWhatTheNextOneWrites) {
  const CopyEntry entry = entry_of("sub/file", content_);
  const std::string whole = to_frame(CopyPiece{entry, 0, content_.size()});
  const auto bytes = [this](std::size_t from, std::size_t to) {
    return to_frame(Kind::package_bytes, std::string_view(content_).substr(from, to - from));
  };
  const fs::path aside = scratch_.path() / "data" / copy_aside();
  HostBeside lost(place_);
  const CopyEntry first = entry_of("first", "x");
  lost.give(to_frame(CopyPiece{first, 0, 1}));
  wait_for_size(part_of(first), 0);
  fs::remove(aside / "lock");  // as a file server frees it
  place_.round = 2;
  place_.host = 4;
  HostBeside next(place_);
  next.give(whole + bytes(0, 80'000));
  wait_for_size(part_of(entry), 80'000);
  // The first one's question whether it is to go on is not a second old.
  lost.give(to_frame(Kind::package_bytes, "x") + to_frame(CopySum{to_hex(sha256("x"))}) + whole);
  ::usleep(200'000);
  next.give(bytes(80'000, content_.size()) + to_frame(CopySum{to_hex(sha256(content_))}));
  EXPECT_EQ(next.end(), 0);
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
}

TEST_F(CopyFolderTest, ThatCannotBeEnteredIsRefusedAtOnce) {
  const CopyPlace place{scratch_.path() / "data", "one", 1, 0, "", ""};
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(0);
  ::close(next);
  const rlimit one_more{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &one_more);
  std::string why;
  try {
    const CopyFolder folder(place);
  } catch (const Refused& refused) {
    why = refused.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(why, "cannot enter " + (scratch_.path() / "data" / copy_aside()).string() +
                     ": Too many open files");
}

TEST_F(CopyFolderTest, LaunchersThatSendOneTreeTakeTurns) {
  CopyPlace place{std::string("~/code/") + kComing, "one", 1, 0, "", ""};
  CopyFolder first(place);
  first.unlock();
  place.copy = "two";
  { const CopyFolder second(place); }
  EXPECT_NO_THROW(first.give_way());
  place.copy = "one";
  EXPECT_NO_THROW(CopyFolder{place});
}

TEST_F(CopyFolderTest, AHostThatALauncherLeftInTheMiddleOfATreeGivesWayToTheNextOne) {
  CopyPlace place{std::string("~/code/") + kComing, "one", 1, 0, "", ""};
  HostBeside left(place, 30'000);
  const CopyEntry entry = entry_of("file", content_);
  left.give(to_frame(CopyPiece{entry, 0, content_.size()}));
  wait_for_size(scratch_.path() / "code" / kComing / "file", 0);
  place.copy = "two";
  const auto began = std::chrono::steady_clock::now();
  const CopyFolder next(place);
  const auto waited = std::chrono::steady_clock::now() - began;
  EXPECT_GT(waited, std::chrono::seconds(2)) << "something might still come";
  EXPECT_LT(waited, std::chrono::seconds(20));
  EXPECT_TRUE(left.has_given_way());
}

TEST_F(CopyFolderTest, ALockThatGoesAwayWithItsFolderIsNotTaken) {
  const CopyPlace place{std::string("~/code/") + kComing, "one", 1, 0, "", ""};
  const fs::path code = scratch_.path() / "code";
  auto first = std::make_unique<CopyFolder>(place);
  auto next = std::async(std::launch::async, [&place] { return CopyFolder(place).path(); });
  ::usleep(300'000);  // it waits for the lock
  fs::rename(code / kComing, code / "gone");
  first.reset();
  EXPECT_EQ(next.get(), code / kComing);
  EXPECT_TRUE(fs::exists(code / kComing / copy_aside() / "lock"));
}

TEST_F(CopyFolderTest, ACopyThatAnotherLauncherTookOverEnds) {
  CopyFolder first(place_);
  first.unlock();
  place_.copy = "another";
  place_.takes_over = place_.launcher;
  { const CopyFolder second(place_); }
  EXPECT_THROW(first.give_way(), Refused);
}

TEST_F(CopyFolderTest, AClockThatWasAheadKeepsNobodyAwayUntilThen) {
  { const CopyFolder first(place_); }
  const fs::path owner = scratch_.path() / "data" / copy_aside() / "owner";
  place_.copy = "another";
  place_.launcher = "there";
  EXPECT_THROW(CopyFolder{place_}, Refused);
  EXPECT_EQ(other_owner(scratch_.path() / "data", place_), "here");
  fs::last_write_time(owner, fs::file_time_type::clock::now() + std::chrono::hours(24));
  EXPECT_EQ(other_owner(scratch_.path() / "data", place_), "");
  EXPECT_NO_THROW(CopyFolder{place_});
}

TEST_F(CopyFolderTest, APieceThatComesOnceMoreCutsNothing) {
  send(content_, 0, 80'000);
  send(content_, 0, 50'000);
  EXPECT_EQ(fs::file_size(part_of(entry_of("sub/file", content_))), 80'000U);
  EXPECT_TRUE(send(content_, 50'000, content_.size()).spoilt.empty());
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
}

// On a file server each question is four round trips.
TEST_F(CopyFolderTest, ManySmallFilesDoNotAskEachWhetherToGoOn) {
  send("x", 0, 1);
  const fs::path owner = scratch_.path() / "data" / copy_aside() / "owner";
  const Descriptor watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), owner.parent_path().c_str(), IN_OPEN), 0);
  constexpr int kFiles = 300;
  take([](PackageWriter& writer) {
    for (int i = 0; i < kFiles; ++i)
      add(writer, entry_of("many/" + std::to_string(i), "abc"), "abc", 0, 3);
  });
  std::size_t opened = 0;
  std::string events(1U << 16U, '\0');
  for (ssize_t size = 0; (size = ::read(watch.get(), events.data(), events.size())) > 0;)
    for (std::size_t at = 0; (at = events.find("owner", at)) < static_cast<std::size_t>(size); ++at)
      ++opened;
  EXPECT_GT(opened, 0U);
  EXPECT_LT(opened, 100U);
  EXPECT_TRUE(fs::exists(scratch_.path() / "data/many/299"));
}

}  // namespace
}  // namespace dtool::host
