// SPDX-License-Identifier: MIT
// What a host makes of parcels: whole, in pieces, spoilt, interrupted, and with names that lead
// elsewhere.
#include "sync/copy/host/take_parcel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ssh/host/sha256.h"
#include "sync/copy/host/answer_copy.h"
#include "sync/copy/host/copy_folder.h"
#include "sync/host/tree_folder.h"
#include "sync/package_writer.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;
using tree_sync::Compression;
using tree_sync::PackageWriter;

CopyEntry entry_of(const std::string& name, const std::string& content) {
  CopyEntry entry;
  entry.name = name;
  entry.mode = 0640;
  entry.seconds = 1'000'000'000;
  entry.nanoseconds = 123'456'789;
  entry.size = content.size();
  return entry;
}

class TakeParcelTest : public testing::Test {
 protected:
  using Fill = std::function<void(PackageWriter&)>;

  /// `read` gets what `fill` packs.
  template <typename Read>
  auto with_package(const Fill& fill, Read read) {
    std::string bytes;
    const ssh::SharedBytes::Write write = [&bytes](std::string_view more) { bytes += more; };
    PackageWriter writer(write, Compression::zstd, "", 0);
    fill(writer);
    writer.finish();
    const fs::path path = scratch_.write("package", bytes);
    const Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    FrameInput frames(input.get());
    return read(frames);
  }

  ParcelReply take(const Fill& fill) {
    return with_package(fill, [this](FrameInput& frames) {
      ParcelRequest request{place_, true, 1000, {}};
      return take_parcel(request, frames, [](const TreeNews&) {});
    });
  }

  CopyReply ask(const std::vector<CopyEntry>& entries, bool settles = false) {
    const Fill fill = [&](PackageWriter& writer) {
      for (const CopyEntry& entry : entries) writer.add(to_frame(entry));
    };
    return with_package(fill, [&](FrameInput& frames) {
      return answer_copy({place_, settles, true, 1000}, frames);
    });
  }

  /// Bytes `from` to `to` of a file, with its checksum if they are its last.
  static void add(PackageWriter& writer, const CopyEntry& entry, const std::string& content,
                  std::size_t from, std::size_t to) {
    writer.add(to_frame(CopyPiece{entry, from, to - from}));
    if (to > from)
      writer.add(to_frame(Kind::package_bytes, std::string_view(content).substr(from, to - from)));
    if (to == content.size()) writer.add(to_frame(CopySum{to_hex(sha256(content))}));
  }
  ParcelReply send(const std::string& content, std::size_t from, std::size_t to) {
    const CopyEntry entry = entry_of("sub/file", content);
    return take([&](PackageWriter& writer) { add(writer, entry, content, from, to); });
  }
  fs::path part_of(const CopyEntry& entry) const {
    return scratch_.path() / "data" / kCopyAside / "parts" / part_name(entry);
  }

  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path()};
  CopyPlace place_{"~/data", "copy", 1, 0, "here", ""};
  const std::string content_ = std::string(100'000, 'x') + "end";
};

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
  EXPECT_FALSE(fs::exists(scratch_.path() / "data" / kCopyAside));
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
  const fs::path owner = scratch_.path() / "data" / kCopyAside / "owner";
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
