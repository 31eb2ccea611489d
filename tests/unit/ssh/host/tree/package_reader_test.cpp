// SPDX-License-Identifier: MIT
#include "ssh/host/frame_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ssh/host/files.h"
#include "sync/package_writer.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(PackageReader, TwoThreadsReadTwoPackagesAtOnce) {
  const tests::TemporaryFolder scratch;
  const auto read = [&scratch](char filling) {
    const std::string body(200'000, filling);
    std::string package;
    tree_sync::PackageWriter writer([&package](std::string_view more) { package += more; },
                                    tree_sync::Compression::zstd, "", 0);
    for (int i = 0; i < 100; ++i) writer.add(to_frame(Kind::package_bytes, body));
    writer.finish();
    const auto path = scratch.write(std::string(1, filling), package);
    const Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    FrameInput frames(input.get());
    PackageReader reader(frames, std::chrono::seconds(10), Compressed::yes);
    while (const auto frame = reader.next()) EXPECT_TRUE(frame->body == body) << filling;
  };
  std::thread other(read, 'b');
  read('a');
  other.join();
}

}  // namespace
}  // namespace dtool::host
