// SPDX-License-Identifier: MIT
// Changes as they come to a host with a question: whole, cut off, spoilt, and with names that lead
// elsewhere.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/tree/answer_tree.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/push.h"
#include "sync/package_writer.h"
#include "tests/unit/disk_steps.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

/// A file, a link, or a folder (its name ends with a slash).
struct Sent {
  CopyEntry entry = {};
  std::string content = {};
  std::string sha256 = {};  ///< that is told, if not the right one
};

Sent file(const std::string& name, const std::string& content) {
  Sent sent{{}, content};
  sent.entry.name = name;
  sent.entry.mode = 0640;
  sent.entry.seconds = 1'000'000'000;
  sent.entry.nanoseconds = 123'456'789;
  sent.entry.size = content.size();
  return sent;
}

Sent link(const std::string& name, const std::string& target) {
  Sent sent = file(name, "");
  sent.entry.target = target;
  return sent;
}

Sent folder(const std::string& name, std::uint64_t mode) {
  Sent sent = file(name, "");
  sent.entry.mode = mode;
  return sent;
}

std::string package_of(const std::vector<Sent>& files, const Names& removed = {}) {
  std::string bytes;
  const ssh::SharedBytes::Write write = [&bytes](std::string_view more) { bytes += more; };
  tree_sync::PackageWriter writer(write, tree_sync::Compression::zstd, "", 0);
  if (!removed.names.empty()) writer.add(to_frame(removed));
  for (const auto& [entry, content, sha] : files) {
    writer.add(to_frame(CopyPiece{entry, 0, entry.size}));
    if (entry.name.ends_with('/') || !entry.target.empty()) continue;
    if (!content.empty()) writer.add(to_frame(Kind::package_bytes, content));
    writer.add(to_frame(CopySum{sha.empty() ? to_hex(sha256(content)) : sha}));
  }
  writer.finish();
  return bytes;
}

class GuessedChangeTest : public testing::Test {
 protected:
  PlaceReply take(const std::string& package) {
    const fs::path path = scratch_.write("package", package);
    const Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    FrameInput frames(input.get());
    TreeRequest request;
    request.folder = "~/code";
    request.aside = kComing;
    request.basis = basis_;
    request.tree = tree_;
    request.has_package = true;
    request.is_compressed = true;
    request.patience_ms = 1000;
    request.refuses_foreign = refuses_foreign_;
    const auto reply = answer_tree(request, frames);
    return reply.placed.value_or(PlaceReply{});
  }
  void expect_empty() const {
    const fs::path code = scratch_.path() / "code";
    EXPECT_EQ(list_folder(code / ".~dtool~coming"), std::vector<std::string>{".~dtool~made_for"})
        << "where it will come another way";
    EXPECT_EQ(std::distance(fs::directory_iterator(code), fs::directory_iterator{}), 1);
    EXPECT_EQ(scratch_.read("precious"), "precious");
  }

  std::string basis_;
  std::string tree_ = std::string(64, 'a');
  bool refuses_foreign_ = false;
  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path()};
  const fs::path precious_ = scratch_.write("precious", "precious");
};

TEST_F(GuessedChangeTest, ATreeCountsAsWholeOnceItsFilesAreOnTheDisk) {
  const tests::DiskSteps steps;
  take(package_of({file("a", "one"), file("sub/b", "two")}));
  for (const char* name : {"/a", "/sub/b"})
    EXPECT_TRUE(steps.are_flushed_before(name, "write ", ".whole")) << steps.text();
  EXPECT_TRUE(steps.are_flushed_before(".manifest.new", "name ", ".manifest.new")) << steps.text();
}

TEST_F(GuessedChangeTest, ATreesFilesAreNamedAsItsOwnBeforeTheyExist) {
  const tests::DiskSteps steps;
  take(package_of({file("a", "one")}));
  const std::string text = steps.text();
  const std::size_t list = text.find(".manifest.new\n", text.find("name "));
  EXPECT_LT(list, text.find("/a\n", text.find("name "))) << text;
}

TEST_F(GuessedChangeTest, AForeignFileIsRefusedUnlessItHasTheSameBytes) {
  take(package_of({file("b", "")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  refuses_foreign_ = true;
  for (const char* there : {"ONE", "one "}) {
    scratch_.write("code/a", there);
    const auto reply = take(package_of({file("a", "one")}));
    EXPECT_EQ(reply.foreign, 1) << there;
    EXPECT_EQ(scratch_.read("code/a"), there);
  }
  scratch_.write("code/a", "one");
  EXPECT_TRUE(take(package_of({file("a", "one")})).is_whole);
}

TEST_F(GuessedChangeTest, AWholePackageIsInItsPlace) {
  EXPECT_TRUE(take(package_of({file("a", "A"), folder("sub/", 0750), file("sub/b", "")})).is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "A");
  EXPECT_EQ(fs::status(scratch_.path() / "code/a").permissions(), static_cast<fs::perms>(0640));
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub").permissions(), static_cast<fs::perms>(0750));
  EXPECT_TRUE(fs::exists(scratch_.path() / "code/sub/b"));
}

TEST_F(GuessedChangeTest, WhatGoesIsGoneFromTheDiskBeforeItIsForgotten) {
  take(package_of({file("a", "one"), file("sub/b", "two")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  const tests::DiskSteps steps;
  const auto reply = take(package_of({}, {{"sub/b"}}));
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.removed, 1);
  EXPECT_TRUE(steps.are_flushed_before("/code", "name ", ".manifest.new")) << steps.text();
}

TEST_F(GuessedChangeTest, WhatAnotherLauncherIsSendingStays) {
  take(package_of({file("a", "one")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  const fs::path coming = scratch_.path() / "code" / kComing;
  const CopyPlace place{std::string("~/code/") + kComing, "another", 1, 0, "", ""};
  for (const bool is_sending : {true, false}) {
    auto parcels = std::make_unique<CopyFolder>(place);
    if (!is_sending) parcels.reset();
    EXPECT_TRUE(take(package_of({file("a", is_sending ? "two" : "three")})).is_whole);
    EXPECT_EQ(fs::exists(coming), is_sending);
    std::swap(basis_, tree_);
  }
}

TEST_F(GuessedChangeTest, AFileThatIsNamedAsGoneAndComesStays) {
  take(package_of({file("a", "one"), file("b", "two")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  EXPECT_TRUE(take(package_of({file("a", "three")}, {{"a"}})).is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "three");
}

TEST_F(GuessedChangeTest, AFileAndAFolderChangePlaces) {
  take(package_of({file("a", "one"), file("b/c", "two")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  EXPECT_TRUE(take(package_of({folder("a/", 0755), file("a/x", "three"), file("b", "four")},
                              {{"a", "b/c"}}))
                  .is_whole);
  EXPECT_EQ(scratch_.read("code/a/x"), "three");
  EXPECT_EQ(scratch_.read("code/b"), "four");
}

TEST_F(GuessedChangeTest, AFolderThatMayNotBeWrittenIntoIsAsBefore) {
  take(package_of({folder("sub/", 0555), file("sub/b", "two")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  EXPECT_TRUE(take(package_of({file("sub/b", "three")})).is_whole);
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub").permissions(), static_cast<fs::perms>(0555));
}

TEST_F(GuessedChangeTest, AFileWithAWrongChecksumChangesNothing) {
  Sent spoilt = file("a", "A");
  spoilt.sha256 = std::string(64, '0');
  EXPECT_FALSE(take(package_of({spoilt, file("b", "B")})).is_whole);
  expect_empty();
}

TEST_F(GuessedChangeTest, ASpoiltEditThatKeepsSizeAndTimeIsNotTakenForTheOldFile) {
  take(package_of({file("a", "one")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  Sent spoilt = file("a", "two");
  spoilt.sha256 = std::string(64, '0');
  EXPECT_FALSE(take(package_of({spoilt})).is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "one");
  EXPECT_TRUE(take(package_of({file("a", "two")})).is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "two");
}

TEST_F(GuessedChangeTest, BitsThatActForAFilesOwnerAreNotTaken) {
  Sent program = file("sub/program", "A");
  program.entry.mode = 07755;
  EXPECT_TRUE(take(package_of({folder("sub/", 07750), program})).is_whole);
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub").permissions(), static_cast<fs::perms>(0750));
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub/program").permissions(),
            static_cast<fs::perms>(0755));
}

TEST_F(GuessedChangeTest, ATimeThatNoFileSystemKeepsIsNoMistake) {
  constexpr std::int64_t kYear = 31'557'600;
  Sent old = file("a", "A");
  old.entry.seconds = -400'000 * kYear;
  Sent late = link("b", "a");
  late.entry.seconds = 400'000 * kYear;
  EXPECT_TRUE(take(package_of({old, late})).is_whole);
  EXPECT_EQ(scratch_.read("code/a"), "A");
  EXPECT_EQ(fs::read_symlink(scratch_.path() / "code/b"), "a");
}

TEST_F(GuessedChangeTest, APackageThatIsCutOffAnywhereChangesNothing) {
  const std::string whole = package_of({file("a", "A"), file("b", std::string(3000, 'b'))});
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 16) {
    EXPECT_FALSE(take(whole.substr(0, size)).is_whole) << size;
    expect_empty();
  }
}

TEST_F(GuessedChangeTest, NamesThatLeadOutAreRefused) {
  for (const std::string& name :
       {std::string("../precious"), precious_.native(), std::string("x/../../precious"),
        std::string("a//b"), std::string(".."), std::string("a/.."), std::string("")}) {
    EXPECT_FALSE(take(package_of({file(name, "evil")})).is_whole) << name;
    expect_empty();
  }
  // Through a link of its own.
  EXPECT_FALSE(take(package_of({link("l", scratch_.path()), file("l/precious", "evil")})).is_whole);
  expect_empty();
}

TEST_F(GuessedChangeTest, ALinkThatNoneCanBeIsRefused) {
  EXPECT_FALSE(take(package_of({file("a", "A"), link("b", std::string("a\0b", 3))})).is_whole);
  expect_empty();
}

TEST_F(GuessedChangeTest, FilesThatAreNotWhatTheySayAreRefused) {
  Sent shorter = file("a", "A");
  shorter.entry.size = 2;
  Sent longer = file("a", "AB");
  longer.entry.size = 1;
  for (const auto& files : std::vector<std::vector<Sent>>{{shorter},
                                                          {longer},
                                                          {shorter, file("b", "B")},
                                                          {file("a", "A"), file("a", "B")},
                                                          {file("b", "B"), file("a", "A")}}) {
    EXPECT_FALSE(take(package_of(files)).is_whole);
    expect_empty();
  }
}

}  // namespace
}  // namespace dtool::host
