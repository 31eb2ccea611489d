// SPDX-License-Identifier: MIT
// Spoilt packages: a host takes one whole, or leaves its folder as it was and says why; nothing
// outside the folder is ever touched. Likewise parcels of a copy, which leave parts aside.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "killfiles/channel/sha256.h"
#include "ssh/host/files.h"
#include "ssh/host/tree/answer_tree.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/take_parcel.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/push.h"
#include "sync/package_writer.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

host::CopyEntry entry(const std::string& name, const std::string& content,
                      const std::string& target = "") {
  host::CopyEntry made;
  made.name = name;
  made.mode = 0640;
  made.seconds = 1'000'000'000;
  made.target = target;
  made.size = content.size();
  return made;
}

/// A file in two pieces, and its checksum.
std::string pieces_of(const std::string& name, const std::string& content) {
  const host::CopyEntry made = entry(name, content);
  const std::size_t half = content.size() / 2;
  return host::to_frame(host::CopyPiece{made, 0, half}) +
         host::to_frame(host::Kind::package_bytes, content.substr(0, half)) +
         host::to_frame(host::CopyPiece{made, half, content.size() - half}) +
         host::to_frame(host::Kind::package_bytes, content.substr(half)) +
         host::to_frame(host::CopySum{host::to_hex(host::sha256(content))});
}

/// A link, or a folder.
std::string piece_of(const std::string& name, const std::string& target = "") {
  return host::to_frame(host::CopyPiece{entry(name, "", target), 0, 0});
}

std::string change_of(const std::string& pieces) {
  return host::to_frame(host::Names{{"gone", "sub/gone"}}) + pieces;
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
    request.aside = host::kComing;
    request.tree = "a tree";
    request.has_package = true;
    request.is_compressed = true;
    const auto reply = host::answer_tree(request, frames);
    const bool is_whole = reply.placed && reply.placed->is_whole;
    if (!is_whole) {
      // Where it will come another way.
      const auto names = host::list_folder(folder_.path() / "code/.~dtool~coming");
      EXPECT_EQ(host::list_folder(folder_.path() / "code").size(), 1U);
      EXPECT_EQ(names, std::vector<std::string>{".~dtool~made_for"})
          << testing::PrintToString(names);
    }
    EXPECT_EQ(folder_.read("precious"), "precious");
    const auto left = fs::directory_iterator(folder_.path());
    EXPECT_EQ(std::distance(fs::begin(left), fs::end(left)), 4);  // with code and .dtool
    return is_whole;
  }

  tests::TemporaryFolder folder_;
  tests::TemporaryVariable home_{"HOME", folder_.path()};
  const fs::path precious_ = folder_.write("precious", "precious");
};

TEST_F(PackageFuzz, EntriesAreTakenOrRefused) {
  const std::string folders =
      change_of(pieces_of("a", "A") + piece_of("sub/") + pieces_of("sub/b", "B"));
  const std::string links = change_of(piece_of("a", "../precious") + pieces_of("b/c", "C"));
  fuzz::Mutator mutator({folders, links},
                        {"../precious", "..", "/", "a", "sub/", "\0"s, "\xff"s, "\1\0\0\0"s,
                         host::to_frame(host::Kind::package_bytes, "xy"), folders, links});
  int taken = 0;
  fuzz::feed(mutator, 600, [&](const std::string& frames) { taken += unpack(compressed(frames)); });
  EXPECT_GT(taken, 20);
}

TEST_F(PackageFuzz, BytesAreAPackageOrRefused) {
  const std::string whole = compressed(change_of(pieces_of("a", "A") + pieces_of("b", "B")));
  const std::string large = compressed(change_of(pieces_of("a", std::string(200'000, 'x'))));
  fuzz::Mutator mutator({whole, large}, {"\0"s, "\xff"s, "\x28\xb5\x2f\xfd"s, "\0\0\0\0\x20\0"s,
                                         whole, host::to_frame(host::Kind::package_bytes, "")});
  int taken = 0;
  fuzz::feed(mutator, 600, [&](const std::string& bytes) { taken += unpack(bytes); });
  EXPECT_GT(taken, 20);
}

TEST_F(PackageFuzz, ParcelsAreTakenOrRefused) {
  const std::string whole = pieces_of("a", "some content") + pieces_of("sub/b", "more") +
                            piece_of("sub/c/") + piece_of("link", "../precious");
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
      host::ParcelTaker().take({place, true, 1000, {}}, frames, tell);
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
  const std::string whole = host::to_frame(entry("a", "A")) + host::to_frame(entry("sub/", "")) +
                            host::to_frame(entry("sub/b", "B"));
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
