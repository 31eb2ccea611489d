// SPDX-License-Identifier: MIT
// Spoilt packages: a host takes one whole, or leaves its folder as it was and says why; nothing
// outside the folder is ever touched. Likewise parcels of a copy, which leave parts aside.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "ssh/host/files.h"
#include "ssh/host/messages/copy.h"
#include "ssh/host/messages/tree.h"
#include "ssh/host/sha256.h"
#include "sync/copy/host/answer_copy.h"
#include "sync/copy/host/take_parcel.h"
#include "sync/host/answer_tree.h"
#include "sync/package_writer.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

host::PackageEntry entry(const std::string& name, const std::string& content,
                         const std::string& target = "") {
  host::PackageEntry made;
  made.name = name;
  made.mode = 0640;
  made.seconds = 1'000'000'000;
  made.target = target;
  made.size = content.size();
  made.content.text = content;
  return made;
}

std::string frames_of(const std::vector<host::PackageEntry>& entries) {
  std::string frames = host::to_frame(host::Names{{"gone", "sub/gone"}});
  for (const auto& each : entries) frames += host::to_frame(each);
  return frames;
}

std::string compressed(const std::string& frames) {
  std::string bytes;
  const ssh::SharedBytes::Write write = [&bytes](std::string_view more) { bytes += more; };
  tree_sync::PackageWriter writer(write, tree_sync::Compression::zstd, "", 0);
  writer.add(frames);
  writer.finish();
  return bytes;
}

class PackageFuzz : public testing::Test {
 protected:
  /// Whether it was taken.
  bool unpack(const std::string& package) {
    fs::remove_all(folder_.path() / "code");
    fs::remove_all(folder_.path() / ".dtool");
    const fs::path path = folder_.write("package", package);
    const host::Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    host::FrameInput frames(input.get());
    host::TreeRequest request;
    request.folder = "~/code";
    request.tree = "a tree";
    request.has_package = true;
    request.is_compressed = true;
    const auto reply = host::answer_tree(
        request, frames, [](const host::TreeNews&) {}, server_);
    const bool is_whole = reply.unpacked && reply.unpacked->is_whole;
    const bool is_refused = reply.unpacked && !reply.unpacked->broken.empty();
    EXPECT_NE(is_whole, is_refused);
    if (!is_whole) {
      const auto names = host::list_folder(folder_.path() / "code");
      EXPECT_TRUE(names.empty()) << testing::PrintToString(names)
                                 << (reply.unpacked ? reply.unpacked->broken : "");
    }
    EXPECT_EQ(folder_.read("precious"), "precious");
    const auto left = fs::directory_iterator(folder_.path());
    EXPECT_EQ(std::distance(fs::begin(left), fs::end(left)), 4);  // with code and .dtool
    return is_whole;
  }

  std::optional<host::PackageServer> server_;
  tests::TemporaryFolder folder_;
  tests::TemporaryVariable home_{"HOME", folder_.path()};
  const fs::path precious_ = folder_.write("precious", "precious");
};

TEST_F(PackageFuzz, EntriesAreTakenOrRefused) {
  const std::string folders = frames_of({entry("a", "A"), entry("sub/", ""), entry("sub/b", "B")});
  const std::string links = frames_of({entry("a", "", "../precious"), entry("b/c", "C")});
  fuzz::Mutator mutator({folders, links},
                        {"../precious", "..", "/", "a", "sub/", "\0"s, "\xff"s, "\1\0\0\0"s,
                         host::to_frame(host::Kind::package_bytes, "xy"), folders, links});
  int taken = 0;
  fuzz::feed(mutator, 600, [&](const std::string& frames) { taken += unpack(compressed(frames)); });
  EXPECT_GT(taken, 20);
}

TEST_F(PackageFuzz, BytesAreAPackageOrRefused) {
  const std::string whole = compressed(frames_of({entry("a", "A"), entry("b", "B")}));
  const std::string large = compressed(frames_of({entry("a", std::string(200'000, 'x'))}));
  fuzz::Mutator mutator({whole, large}, {"\0"s, "\xff"s, "\x28\xb5\x2f\xfd"s, "\0\0\0\0\x20\0"s,
                                         whole, host::to_frame(host::Kind::package_bytes, "")});
  int taken = 0;
  fuzz::feed(mutator, 600, [&](const std::string& bytes) { taken += unpack(bytes); });
  EXPECT_GT(taken, 20);
}

host::CopyEntry copied(const std::string& name, const std::string& content) {
  host::CopyEntry made;
  made.name = name;
  made.mode = 0640;
  made.size = content.size();
  return made;
}

/// A file in two pieces, and its checksum.
std::string pieces_of(const std::string& name, const std::string& content) {
  const host::CopyEntry entry = copied(name, content);
  const std::size_t half = content.size() / 2;
  return host::to_frame(host::CopyPiece{entry, 0, half}) +
         host::to_frame(host::Kind::package_bytes, content.substr(0, half)) +
         host::to_frame(host::CopyPiece{entry, half, content.size() - half}) +
         host::to_frame(host::Kind::package_bytes, content.substr(half)) +
         host::to_frame(host::CopySum{host::to_hex(host::sha256(content))});
}

TEST_F(PackageFuzz, ParcelsAreTakenOrRefused) {
  host::CopyEntry link = copied("link", "");
  link.target = "../precious";
  const std::string whole = pieces_of("a", "some content") + pieces_of("sub/b", "more") +
                            host::to_frame(host::CopyPiece{copied("sub/c/", ""), 0, 0}) +
                            host::to_frame(host::CopyPiece{link, 0, 0});
  fuzz::Mutator mutator({whole, pieces_of("link/x", "xy")},
                        {"../precious", "..", "/", "a", "sub/", "\0"s, "\xff"s, "\1\0\0\0"s,
                         host::to_frame(host::Kind::package_bytes, "xy"), whole});
  int taken = 0;
  fuzz::feed(mutator, 600, [&](const std::string& sent) {
    const bool is_alone = sent.size() % 2 == 0;
    if (is_alone) fs::remove_all(folder_.path() / "data");
    const fs::path path = folder_.write("package", compressed(sent));
    const host::Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    host::FrameInput frames(input.get());
    try {
      const host::CopyPlace place{"~/data", "copy", 1, 0, "here", ""};
      const auto tell = [](const host::TreeNews&) {};
      host::ParcelTaker(server_).take({place, true, 1000, {}}, frames, tell);
      ++taken;
    } catch (const std::runtime_error&) {
    }
    if (fs::is_regular_file(folder_.path() / "data/a") && is_alone) {
      EXPECT_EQ(folder_.read("data/a"), "some content");
    }
    EXPECT_EQ(folder_.read("precious"), "precious");
    const std::set<std::string> expected = {".dtool", "data", "package", "precious"};
    for (const auto& each : fs::directory_iterator(folder_.path()))
      EXPECT_TRUE(expected.contains(each.path().filename())) << each.path();
  });
  EXPECT_GT(taken, 20);
}

TEST_F(PackageFuzz, ListingsOfACopyAreReadOrRefused) {
  const std::string whole = host::to_frame(copied("a", "A")) + host::to_frame(copied("sub/", "")) +
                            host::to_frame(copied("sub/b", "B"));
  fuzz::Mutator mutator({whole}, {"../precious", "..", "/", "\0"s, "\xff"s, "\1\0\0\0"s, whole});
  int taken = 0;
  fuzz::feed(mutator, 600, [&](const std::string& sent) {
    const fs::path path = folder_.write("package", compressed(sent));
    const host::Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    host::FrameInput frames(input.get());
    try {
      const host::CopyPlace place{"~/data", "copy", 1, 0, "here", ""};
      host::answer_copy({place, true, true, 1000}, frames);
      ++taken;
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(folder_.read("precious"), "precious");
    EXPECT_FALSE(fs::exists(folder_.path() / "data"));
  });
  EXPECT_GT(taken, 20);
}

}  // namespace
}  // namespace dtool
