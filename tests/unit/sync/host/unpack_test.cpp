// SPDX-License-Identifier: MIT
// Packages as they come to a host: whole, cut off, spoilt, and with names that lead elsewhere.
#include "sync/host/unpack.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ssh/host/messages/tree.h"
#include "sync/host/answer_tree.h"
#include "sync/package_writer.h"
#include "tests/unit/disk_steps.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

PackageEntry file(const std::string& name, const std::string& content) {
  PackageEntry entry;
  entry.name = name;
  entry.mode = 0640;
  entry.seconds = 1'000'000'000;
  entry.nanoseconds = 123'456'789;
  entry.size = content.size();
  entry.content.text = content;
  return entry;
}

PackageEntry link(const std::string& name, const std::string& target) {
  PackageEntry entry = file(name, "");
  entry.target = target;
  return entry;
}

std::string package_of(const std::vector<PackageEntry>& entries, const Names& removed = {}) {
  std::string bytes;
  const ssh::SharedBytes::Write write = [&bytes](std::string_view more) { bytes += more; };
  tree_sync::PackageWriter writer(write, tree_sync::Compression::zstd, "", 0);
  if (!removed.names.empty()) writer.add(to_frame(removed));
  for (const PackageEntry& entry : entries) writer.add(to_frame(entry));
  writer.finish();
  return bytes;
}

class UnpackTest : public testing::Test {
 protected:
  Unpacked unpack(const std::string& package) {
    const fs::path path = scratch_.write("package", package);
    const Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    FrameInput frames(input.get());
    TreeRequest request;
    request.folder = "~/code";
    request.basis = basis_;
    request.tree = tree_;
    request.has_package = true;
    request.is_compressed = true;
    request.patience_ms = 1000;
    request.refuses_foreign = refuses_foreign_;
    const auto reply = answer_tree(
        request, frames, [](const TreeNews&) {}, server_);
    return reply.unpacked.value_or(Unpacked{});
  }
  void expect_empty() const {
    EXPECT_TRUE(fs::is_empty(scratch_.path() / "code"));
    EXPECT_EQ(scratch_.read("precious"), "precious");
  }

  std::optional<PackageServer> server_;
  std::string basis_;
  std::string tree_ = std::string(64, 'a');
  bool refuses_foreign_ = false;
  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path()};
  const fs::path precious_ = scratch_.write("precious", "precious");
};

TEST_F(UnpackTest, ATreeCountsAsWholeOnceItsFilesAreOnTheDisk) {
  const tests::DiskSteps steps;
  unpack(package_of({file("a", "one"), file("sub/b", "two")}));
  for (const char* name : {"/a", "/sub/b"})
    EXPECT_TRUE(steps.are_flushed_before(name, "write ", ".whole")) << steps.text();
  EXPECT_TRUE(steps.are_flushed_before(".manifest.new", "name ", ".manifest.new")) << steps.text();
}

TEST_F(UnpackTest, ATreesFilesAreNamedAsItsOwnBeforeTheyExist) {
  const tests::DiskSteps steps;
  unpack(package_of({file("a", "one")}));
  const std::string text = steps.text();
  const std::size_t list = text.find(".manifest.new\n", text.find("name "));
  EXPECT_LT(list, text.find("/a\n", text.find("name "))) << text;
}

TEST_F(UnpackTest, AForeignFileIsRefusedUnlessItHasTheSameBytes) {
  unpack(package_of({file("b", "")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  refuses_foreign_ = true;
  for (const char* there : {"ONE", "one "}) {
    scratch_.write("code/a", there);
    const auto unpacked = unpack(package_of({file("a", "one")}));
    EXPECT_EQ(unpacked.foreign, 1) << there;
    EXPECT_EQ(scratch_.read("code/a"), there);
  }
  scratch_.write("code/a", "one");
  EXPECT_TRUE(unpack(package_of({file("a", "one")})).is_whole);
}

TEST_F(UnpackTest, AWholePackageIsInItsPlace) {
  PackageEntry folder;
  folder.name = "sub/";
  folder.mode = 0750;
  const auto unpacked = unpack(package_of({file("a", "A"), folder, file("sub/b", "")}));
  EXPECT_TRUE(unpacked.is_whole) << unpacked.broken;
  EXPECT_EQ(scratch_.read("code/a"), "A");
  EXPECT_EQ(fs::status(scratch_.path() / "code/a").permissions(), static_cast<fs::perms>(0640));
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub").permissions(), static_cast<fs::perms>(0750));
  EXPECT_TRUE(fs::exists(scratch_.path() / "code/sub/b"));
}

TEST_F(UnpackTest, ATreeIsNotWholeWhereAFileIsNotAsItCame) {
  unpack(package_of({file("a", "one"), file("b", "two")}));
  basis_ = tree_;
  tree_ = std::string(64, 'c');
  const auto unpacked = unpack(package_of({file("a", "three")}, {{"a"}}));  // both comes and goes
  EXPECT_FALSE(unpacked.is_whole);
  EXPECT_EQ(unpacked.broken, "the tree is not what it should be");
}

TEST_F(UnpackTest, BitsThatActForAFilesOwnerAreNotTaken) {
  PackageEntry folder;
  folder.name = "sub/";
  folder.mode = 07750;
  PackageEntry program = file("sub/program", "A");
  program.mode = 07755;
  const auto unpacked = unpack(package_of({folder, program}));
  EXPECT_TRUE(unpacked.is_whole) << unpacked.broken;
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub").permissions(), static_cast<fs::perms>(0750));
  EXPECT_EQ(fs::status(scratch_.path() / "code/sub/program").permissions(),
            static_cast<fs::perms>(0755));
}

TEST_F(UnpackTest, ATimeThatNoFileSystemKeepsIsNoMistake) {
  constexpr std::int64_t kYear = 31'557'600;
  PackageEntry old = file("a", "A");
  old.seconds = -400'000 * kYear;
  PackageEntry late = link("b", "a");
  late.seconds = 400'000 * kYear;
  const auto unpacked = unpack(package_of({old, late}));
  EXPECT_TRUE(unpacked.is_whole) << unpacked.broken;
  EXPECT_EQ(scratch_.read("code/a"), "A");
  EXPECT_EQ(fs::read_symlink(scratch_.path() / "code/b"), "a");
}

TEST_F(UnpackTest, APackageThatIsCutOffAnywhereChangesNothing) {
  const std::string whole = package_of({file("a", "A"), file("b", std::string(3000, 'b'))});
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 16) {
    const auto unpacked = unpack(whole.substr(0, size));
    EXPECT_FALSE(unpacked.is_whole) << size;
    EXPECT_NE(unpacked.broken, "") << size;
    expect_empty();
  }
}

TEST_F(UnpackTest, NamesThatLeadOutAreRefused) {
  for (const std::string& name :
       {std::string("../precious"), precious_.native(), std::string("x/../../precious"),
        std::string("a//b"), std::string(".."), std::string("a/.."), std::string("")}) {
    EXPECT_FALSE(unpack(package_of({file(name, "evil")})).is_whole) << name;
    expect_empty();
  }
  // Through a link of its own.
  EXPECT_FALSE(
      unpack(package_of({link("l", scratch_.path()), file("l/precious", "evil")})).is_whole);
  expect_empty();
}

TEST_F(UnpackTest, ALinkThatNoneCanBeIsRefused) {
  EXPECT_FALSE(unpack(package_of({file("a", "A"), link("b", std::string("a\0b", 3))})).is_whole);
  expect_empty();
}

TEST_F(UnpackTest, FilesThatAreNotWhatTheySayAreRefused) {
  PackageEntry shorter = file("a", "A");
  shorter.size = 2;
  PackageEntry longer = file("a", "AB");
  longer.size = 1;
  for (const auto& entries :
       std::vector<std::vector<PackageEntry>>{{shorter},
                                              {longer},
                                              {shorter, file("b", "B")},
                                              {file("a", "A"), file("a", "B")},
                                              {file("b", "B"), file("a", "A")}}) {
    EXPECT_FALSE(unpack(package_of(entries)).is_whole);
    expect_empty();
  }
}

}  // namespace
}  // namespace dtool::host
