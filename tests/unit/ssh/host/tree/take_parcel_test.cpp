// SPDX-License-Identifier: MIT
// What a host makes of parcels: whole, in pieces, spoilt, interrupted, and with names that lead
// elsewhere.
#include "ssh/host/tree/take_parcel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"
#include "tests/unit/disk_steps.h"
#include "tests/unit/ssh/host/tree/host_beside.h"
#include "tests/unit/ssh/host/tree/parcels_here.h"

namespace dtool::host {
namespace {

TEST_F(TakeParcelTest, AFileInPiecesGetsItsNameWhenItIsWhole) {
  EXPECT_TRUE(send(content_, 0, 50'000).spoilt.empty());
  EXPECT_FALSE(fs::exists(scratch_.path() / "data/sub/file"));
  EXPECT_TRUE(send(content_, 50'000, content_.size()).spoilt.empty());
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
  struct stat file {};
  ::stat((scratch_.path() / "data/sub/file").c_str(), &file);
  EXPECT_EQ(file.st_mode & 07777U, 0640U);
  EXPECT_EQ(file.st_mtim.tv_nsec, 123'456'789);
}

TEST_F(TakeParcelTest, AFileGetsItsNameWhenItIsOnTheDisk) {
  const tests::DiskSteps steps;
  send(content_, 0, content_.size());
  const std::string part = part_of(entry_of("sub/file", content_));
  EXPECT_TRUE(steps.are_flushed_before(part, "name ", part)) << steps.text();
}

TEST_F(TakeParcelTest, BitsThatActForAFilesOwnerAreNotTaken) {
  CopyEntry folder = entry_of("sub/", "");
  folder.mode = 07750;
  CopyEntry program = entry_of("sub/program", "abc");
  program.mode = 07755;
  take([&](PackageWriter& writer) {
    writer.add(to_frame(CopyPiece{folder, 0, 0}));
    add(writer, program, "abc", 0, 3);
  });
  const fs::path sub = scratch_.path() / "data/sub";
  using fs::perms;
  EXPECT_EQ(fs::status(sub / "program").permissions(), static_cast<perms>(0755));
  EXPECT_TRUE(ask({folder, program}).is_unsettled);
  EXPECT_FALSE(ask({folder, program}, true).is_unsettled);
  EXPECT_EQ(fs::status(sub).permissions(), static_cast<perms>(0750));
  // Those that an earlier dtool brought go; the ones of a folder there are its own.
  fs::permissions(sub / "program", perms::set_uid, fs::perm_options::add);
  fs::permissions(sub, perms::set_gid, fs::perm_options::add);
  EXPECT_FALSE(ask({folder, program}, true).is_unsettled);
  EXPECT_EQ(fs::status(sub / "program").permissions(), static_cast<perms>(0755));
  EXPECT_EQ(fs::status(sub).permissions(), static_cast<perms>(0750) | perms::set_gid);
}

TEST_F(TakeParcelTest, AnotherCopyGoesOnWhereOneStopped) {
  send(content_, 0, 50'000);
  place_.copy = "another";
  place_.takes_over = "here";
  const CopyReply reply = ask({entry_of("sub/file", content_)});
  ASSERT_EQ(reply.parts.size(), 1U);
  EXPECT_EQ(reply.parts[0].bytes, 50'000U);
  EXPECT_TRUE(send(content_, 50'000, content_.size()).spoilt.empty());
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
}

TEST_F(TakeParcelTest, AByteThatWasSpoiltBetweenTwoCopiesIsNoticed) {
  send(content_, 0, 50'000);
  place_.copy = "another";
  place_.takes_over = "here";
  const fs::path part = part_of(entry_of("sub/file", content_));
  scratch_.write(part, std::string(49'999, 'x') + "y");
  EXPECT_EQ(send(content_, 50'000, content_.size()).spoilt, (std::vector<std::string>{"sub/file"}));
  EXPECT_FALSE(fs::exists(scratch_.path() / "data/sub/file"));
  EXPECT_FALSE(fs::exists(part));
  // And all of it comes again.
  EXPECT_TRUE(ask({entry_of("sub/file", content_)}).parts.empty());
}

TEST_F(TakeParcelTest, AWrongChecksumIsToldAndTheFileIsNot) {
  const CopyEntry entry = entry_of("file", "abc");
  const auto reply = take([&](PackageWriter& writer) {
    writer.add(to_frame(CopyPiece{entry, 0, 3}));
    writer.add(to_frame(Kind::package_bytes, "abd"));
    writer.add(to_frame(CopySum{to_hex(sha256("abc"))}));
  });
  EXPECT_EQ(reply.spoilt, (std::vector<std::string>{"file"}));
  EXPECT_FALSE(fs::exists(scratch_.path() / "data/file"));
}

TEST_F(TakeParcelTest, ABeginningThatIsGoneIsTold) {
  EXPECT_EQ(send(content_, 50'000, content_.size()).spoilt, (std::vector<std::string>{"sub/file"}));
}

TEST_F(TakeParcelTest, NoNameLeadsOutOfTheFolder) {
  scratch_.write("precious", "precious");
  fs::create_directories(scratch_.path() / "data");
  fs::create_directory_symlink(scratch_.path(), scratch_.path() / "data/out");
  fs::create_symlink(scratch_.path() / "precious", scratch_.path() / "data/link");
  for (const std::string name :
       {"../precious", "out/precious", "sub/../../precious", "/precious", "..", ""}) {
    const CopyEntry entry = entry_of(name, "bad");
    EXPECT_THROW(take([&](PackageWriter& writer) { add(writer, entry, "bad", 0, 3); }), BadMessage)
        << name;
  }
  const CopyEntry entry = entry_of("link", "new");
  take([&](PackageWriter& writer) { add(writer, entry, "new", 0, 3); });
  EXPECT_EQ(scratch_.read("data/link"), "new");
  EXPECT_FALSE(fs::is_symlink(scratch_.path() / "data/link"));
  EXPECT_EQ(scratch_.read("precious"), "precious");
}

TEST_F(TakeParcelTest, MalformedParcelsAreRefused) {
  const CopyEntry entry = entry_of("file", "abc");
  EXPECT_THROW(take([&](PackageWriter& writer) {
                 writer.add(to_frame(CopyPiece{entry, 0, 3}));
               }),
               BadMessage);
  EXPECT_THROW(take([&](PackageWriter& writer) {
                 writer.add(to_frame(CopyPiece{entry, 2, 3}));
               }),
               BadMessage);
  EXPECT_THROW(take([](PackageWriter& writer) { writer.add(to_frame(CopySum{"abc"})); }),
               BadMessage);
  EXPECT_THROW(take([&](PackageWriter& writer) {
                 writer.add(to_frame(CopyPiece{entry, 0, 3}));
                 writer.add(to_frame(Kind::package_bytes, "abcd"));
               }),
               BadMessage);
  EXPECT_FALSE(fs::exists(scratch_.path() / "data/file"));
}

TEST_F(TakeParcelTest, TheQuestionWritesNothing) {
  const CopyReply reply = ask({entry_of("a", "A"), entry_of("b", "B")});
  ASSERT_EQ(reply.lacks.size(), 1U);
  EXPECT_EQ(reply.lacks[0].count, 2U);
  EXPECT_GT(reply.free, reply.needed);
  EXPECT_GT(reply.needed, 0U);
  EXPECT_FALSE(fs::exists(scratch_.path() / "data"));
}

TEST_F(TakeParcelTest, SameSizeAndTimeIsThereAndAnotherTimeIsCompared) {
  const CopyEntry entry = entry_of("sub/file", content_);
  send(content_, 0, content_.size());
  EXPECT_TRUE(ask({entry}).lacks.empty());
  CopyEntry later = entry;
  later.seconds += 1;
  EXPECT_EQ(ask({later}).unsure.size(), 1U);
  later.sha256 = to_hex(sha256("something else"));
  EXPECT_EQ(ask({later}).lacks.size(), 1U);
  later.sha256 = to_hex(sha256(content_));
  EXPECT_TRUE(ask({later}).lacks.empty());
  const CopyReply settled = ask({later}, true);
  EXPECT_FALSE(settled.is_unsettled);
  struct stat file {};
  ::stat((scratch_.path() / "data/sub/file").c_str(), &file);
  EXPECT_EQ(file.st_mtim.tv_sec, later.seconds);
  EXPECT_FALSE(fs::exists(scratch_.path() / "data" / copy_aside()));
}

TEST_F(TakeParcelTest, WhatIsLackingIsNotSettled) {
  send(content_, 0, 50'000);
  const CopyReply reply = ask({entry_of("sub/file", content_)}, true);
  EXPECT_EQ(reply.lacks.size(), 1U);
  EXPECT_TRUE(fs::exists(part_of(entry_of("sub/file", content_))));
}

TEST_F(TakeParcelTest, TwoCopiesDoNotMix) {
  send(content_, 0, 50'000);
  place_.copy = "another";
  place_.launcher = "elsewhere";
  EXPECT_EQ(ask({entry_of("sub/file", content_)}).owner, "here");
  EXPECT_THROW(send(content_, 50'000, content_.size()), Refused);
  // Long after, it counts as ended.
  const fs::path owner = scratch_.path() / "data" / copy_aside() / "owner";
  fs::last_write_time(owner, fs::file_time_type::clock::now() - std::chrono::minutes(3));
  EXPECT_EQ(ask({entry_of("sub/file", content_)}).owner, "");
  EXPECT_TRUE(send(content_, 50'000, content_.size()).spoilt.empty());
}

TEST_F(TakeParcelTest, HostsThatShareTheFolderTellWhoHasIt) {
  send(content_, 0, 50'000);
  place_.host = 4;
  EXPECT_EQ(send(content_, 50'000, content_.size()).holder, 0);
  place_.round = 2;  // the first one may have failed
  EXPECT_EQ(send(content_, 50'000, content_.size()).holder, std::nullopt);
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
}

TEST_F(TakeParcelTest, AHostThatWaitsForBytesGivesWayToTheOneThatTakesItsPlace) {
  const fs::path owner = scratch_.path() / "data" / copy_aside() / "owner";
  HostBeside lost(place_);
  while (!fs::exists(owner)) ::usleep(1000);
  // In the same round it is the one that has the folder: the others need not wait for that.
  const auto begin = std::chrono::steady_clock::now();
  place_.host = 4;
  EXPECT_EQ(send(content_, 0, content_.size()).holder, 0);
  EXPECT_FALSE(lost.has_given_way());
  // In the next round the launcher has lost it.
  place_.round = 2;
  EXPECT_EQ(send(content_, 0, content_.size()).holder, std::nullopt);
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
  EXPECT_TRUE(lost.has_given_way());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(TakeParcelTest, WhatAnotherUserLeftIsNotInTheWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make what another user left";
  constexpr uid_t kOther = 65534;
  const fs::path others = scratch_.path() / "data/.~dtool~copy-65534";
  for (const fs::path& each : {fs::path(scratch_.path() / "data/.~dtool~copy"), others}) {
    fs::create_directories(each);
    ASSERT_EQ(::chown(each.c_str(), kOther, kOther), 0);
  }
  EXPECT_EQ(ask({entry_of("sub/file", content_)}).owner, "");
  send(content_, 0, content_.size());
  EXPECT_EQ(scratch_.read("data/sub/file"), content_);
  EXPECT_TRUE(fs::exists(others));
  // What bears this user's name and is not his is named, with its owner.
  const fs::path own = scratch_.path() / "data" / copy_aside();
  fs::remove_all(own);
  fs::rename(others, own);
  try {
    ask({entry_of("sub/other", content_)});
    FAIL();
  } catch (const Refused& refused) {
    EXPECT_EQ(std::string(refused.what()).find(own.native() + " belongs to nobody"), 0U)
        << refused.what();
    EXPECT_FALSE(refused.hint().empty());
  }
}

TEST_F(TakeParcelTest, WhatAnotherUserMayHavePutThereIsComparedBySha256) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  constexpr uid_t kOther = 65534;
  CopyEntry folder = entry_of("sub/", "");
  CopyEntry entry = entry_of("sub/file", content_);
  send(content_, 0, content_.size());
  const fs::path file = scratch_.path() / "data/sub/file";
  EXPECT_TRUE(ask({folder, entry}).unsure.empty());
  EXPECT_EQ(ask({folder, entry}).stranger, "");
  // A file of the same size and time that somebody put there, in a folder that all may write to.
  const struct timespec times[] = {{0, UTIME_OMIT}, {entry.seconds, entry.nanoseconds}};
  const auto swap = [&] {
    scratch_.write(file, std::string(content_.size(), 'y'));
    ::utimensat(AT_FDCWD, file.c_str(), times, 0);
  };
  swap();
  EXPECT_TRUE(ask({folder, entry}).lacks.empty()) << "as this user's own";
  for (const fs::path& each : {file, file.parent_path(), scratch_.path() / "data"}) {
    ASSERT_EQ(::chown(each.c_str(), kOther, kOther), 0);
    entry.sha256 = "";
    EXPECT_EQ(ask({folder, entry}).unsure.size(), 1U) << each;
    entry.sha256 = to_hex(sha256(content_));
    EXPECT_EQ(ask({folder, entry}).lacks.size(), 1U) << each;
    const bool is_told = each == scratch_.path() / "data";
    EXPECT_EQ(ask({folder, entry}).stranger, is_told ? each.native() + " belongs to nobody" : "");
    ASSERT_EQ(::chown(each.c_str(), 0, 0), 0);
  }
  scratch_.write(file, content_);
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
  ASSERT_EQ(::chown(file.c_str(), kOther, kOther), 0);
  EXPECT_TRUE(ask({folder, entry}).lacks.empty()) << "with the right SHA-256 it is there";
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
}

// In a folder of a team another member can rename the user's folders.
TEST_F(TakeParcelTest, AFolderThatWasGivenTheNameOfWhatLiesAsideStays) {
  const fs::path data = scratch_.path() / "data";
  for (const auto mode : {0700U, 0755U}) {
    const fs::path gone = data / (copy_aside() + ".gone7");
    scratch_.write(gone / "thesis", "long");
    fs::permissions(gone, fs::perms(mode));
    {
      CopyFolder folder(place_);
      folder.finish();
    }
    EXPECT_TRUE(fs::exists(gone / "thesis"));
    fs::rename(gone, data / copy_aside());
    EXPECT_THROW(CopyFolder folder(place_), Refused);
    EXPECT_TRUE(fs::exists(data / copy_aside() / "thesis"));
    fs::remove_all(data);
  }
}

TEST_F(TakeParcelTest, ALockThatIsALinkIsNotFollowed) {
  const fs::path thesis = scratch_.write("thesis", "long");
  const fs::path aside = scratch_.path() / "data" / copy_aside();
  fs::create_directories(aside);
  fs::permissions(aside, fs::perms(0700));
  fs::create_symlink(thesis, aside / "lock");
  EXPECT_THROW(CopyFolder folder(place_), Refused);
  EXPECT_EQ(scratch_.read("thesis"), "long");
}

TEST_F(TakeParcelTest, WhatIsGivenUpGoesAfterThirtyDays) {
  send(content_, 0, 50'000);
  const fs::path aside = scratch_.path() / "data" / copy_aside();
  const fs::path copies = scratch_.path() / ".dtool/copies";
  ASSERT_EQ(std::distance(fs::directory_iterator(copies), {}), 1);
  const fs::path note = fs::directory_iterator(copies)->path();
  const auto days_ago = [](int days) {
    return fs::file_time_type::clock::now() - std::chrono::hours(24 * days);
  };
  fs::last_write_time(note, days_ago(40));
  remove_given_up_copies();
  EXPECT_TRUE(fs::exists(part_of(entry_of("sub/file", content_))));  // it was used since
  fs::last_write_time(aside / "owner", days_ago(29));
  remove_given_up_copies();
  EXPECT_TRUE(fs::exists(part_of(entry_of("sub/file", content_))));
  fs::last_write_time(aside / "owner", days_ago(31));
  remove_given_up_copies();
  EXPECT_FALSE(fs::exists(aside));
  EXPECT_FALSE(fs::exists(note));
  EXPECT_TRUE(fs::exists(scratch_.path() / "data/sub"));
}

TEST_F(TakeParcelTest, ACopyThatEndsLeavesNoNote) {
  send("x", 0, 1);
  EXPECT_FALSE(fs::is_empty(scratch_.path() / ".dtool/copies"));
  ask({entry_of("sub/file", "x")}, true);
  EXPECT_TRUE(fs::is_empty(scratch_.path() / ".dtool/copies"));
}

TEST_F(TakeParcelTest, TheEndOfOneCopyTakesNothingFromTheNext) {
  for (int i = 0; i < 60; ++i) {
    CopyPlace first = place_;
    first.copy = "first";
    first.launcher = "gone";
    CopyFolder ending(first);
    for (int j = 0; j < 40; ++j)
      scratch_.write(fs::path("data") / copy_aside() / ("parts/" + std::to_string(j)), "");
    const pid_t ends = ::fork();
    if (ends == 0) {
      ending.finish();
      ::_exit(0);
    }
    CopyPlace second = place_;
    second.copy = "second";
    second.takes_over = "gone";
    // Without the folder the first one holds no lock that has a name.
    const fs::path aside = scratch_.path() / "data" / copy_aside();
    while (fs::exists(aside / "lock")) {
    }
    {
      CopyFolder next(second);
      ::waitpid(ends, nullptr, 0);
      EXPECT_TRUE(fs::exists(aside / "owner") && fs::exists(aside / "parts") &&
                  fs::exists(aside / "lock"))
          << "after " << i << " times";
      next.finish();
    }
    if (HasFailure()) break;
  }
  EXPECT_FALSE(fs::exists(scratch_.path() / "data" / copy_aside()));
}

TEST_F(TakeParcelTest, AFolderInTheWayOfAFileIsNamed) {
  fs::create_directories(scratch_.path() / "data/file");
  scratch_.write("data/folder", "");
  CopyEntry folder = entry_of("folder/", "");
  const CopyReply reply = ask({entry_of("file", "x"), folder});
  EXPECT_EQ(reply.blocked.size(), 2U);
}

TEST_F(TakeParcelTest, AFileInTheWayOfTheFolderIsRefused) {
  scratch_.write("data", "");
  EXPECT_THROW(ask({entry_of("file", "x")}), Refused);
  place_.folder = "~/data/below";
  EXPECT_THROW(ask({entry_of("file", "x")}), Refused);
}

}  // namespace
}  // namespace dtool::host
