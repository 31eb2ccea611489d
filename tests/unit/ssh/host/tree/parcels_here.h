// SPDX-License-Identifier: MIT
// A home with a folder that tests copy into, as a host does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/take_parcel.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"
#include "sync/package_writer.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {

namespace fs = std::filesystem;
using tree_sync::Compression;
using tree_sync::PackageWriter;

inline CopyEntry entry_of(const std::string& name, const std::string& content) {
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
      return ParcelTaker().take(request, frames, [](const TreeNews&) {});
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
    return scratch_.path() / "data" / copy_aside() / "parts" / part_name(entry);
  }

  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path()};
  CopyPlace place_{"~/data", "copy", 1, 0, "here", ""};
  const std::string content_ = std::string(100'000, 'x') + "end";
};

}  // namespace dtool::host
