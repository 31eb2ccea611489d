// SPDX-License-Identifier: MIT
// Images and labels that fit together, or do not; and the packed files that they are read from.
#include "trainer/data/idx.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <fstream>
#include <functional>

#include "tests/trainer/own_folder.h"
#include "trainer/data/data_settings.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;
namespace fs = std::filesystem;

namespace {

std::string idx(const std::vector<int>& shape, const std::string& bytes) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const int each : shape) text += {'\0', '\0', '\0', static_cast<char>(each)};
  return text + bytes;
}

/// The whole content of a file.
std::string read_packed(const std::filesystem::path& file) {
  PackedFile stream(file);
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  std::string content;
  std::size_t done = 0;
  std::size_t part = unknown ? 1 << 20 : static_cast<std::size_t>(size) + 1;
  for (;;) {
    content.resize(done + part);
    const std::size_t got = stream.read(content.data() + done, part);
    done += got;
    if (got < part) break;
    part = std::max(part, std::size_t{1} << 20);
  }
  content.resize(done);
  return content;
}

class IdxFiles : public OwnFolder {
 protected:
  fs::path write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  /// Two images of 1 x 2 pixels with labels 0 and 1 to train, and one to test.
  void write_all() const {
    write("a", idx({2, 1, 2}, "abcd"));
    write("b", idx({2}, {'\0', '\1'}));
    write("c", idx({1, 1, 2}, "ef"));
    write("d", idx({1}, "\1"));
  }

  TrainAndTest read_all() const {
    return read_image_files({folder_ / "a", folder_ / "b", folder_ / "c", folder_ / "d"},
                            std::pmr::get_default_resource());
  }

  /// What is wrong with `content` in the place of the file `name`; `FOLDER` is their folder.
  std::string mistake_with(const std::string& name, const std::string& content) const {
    write_all();
    write(name, content);
    return mistake_by([&] { read_all(); });
  }

  std::string mistake_by(const std::function<void()>& action) const {
    std::string text = "no mistake";
    try {
      action();
    } catch (const UsageError& problem) {
      text = problem.what();
    }
    const std::string folder = folder_.string() + "/";
    for (auto at = text.find(folder); at != text.npos; at = text.find(folder)) {
      text.erase(at, folder.size());
    }
    return text;
  }
};

}  // namespace

TEST_F(IdxFiles, ImagesAndLabelsAreReadInTheirOrder) {
  write_all();
  const auto data = read_all();
  EXPECT_EQ(data.classes, 2);
  EXPECT_EQ(data.train.count, 2);
  EXPECT_EQ(data.train.rows, 1);
  EXPECT_EQ(data.train.columns, 2);
  EXPECT_EQ(data.train.pixels, 2);
  EXPECT_EQ(data.train.images, (std::pmr::vector<std::uint8_t>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(data.train.labels, (std::pmr::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(data.test.images, (std::pmr::vector<std::uint8_t>{'e', 'f'}));
  EXPECT_EQ(data.test.labels, (std::pmr::vector<std::uint8_t>{1}));
}

TEST_F(IdxFiles, FilesThatDoNotFitTogetherAreNamed) {
  EXPECT_EQ(mistake_with("a", idx({2, 2}, "abcd")), "a: holds 2 dimensions, images have 3");
  EXPECT_EQ(mistake_with("b", idx({2, 1}, "ab")), "b: holds 2 dimensions, labels have 1");
  EXPECT_EQ(mistake_with("b", idx({1}, "b")), "a holds 2 images, but b holds 1 labels");
  EXPECT_EQ(mistake_with("c", idx({1, 1, 1}, "e")), "a has images of 2 pixels, c of 1");
  EXPECT_EQ(mistake_with("d", idx({1}, "\2")), "d has a label 2, b none above 1");
  write("d", idx({0}, ""));
  EXPECT_EQ(mistake_with("c", idx({0, 1, 2}, "")), "c holds 0 images, but d holds 1 labels");
  write_all();
  write("d", idx({0}, ""));
  write("c", idx({0, 1, 2}, ""));
  EXPECT_EQ(mistake_by([&] { read_all(); }), "c: holds no image");
}

TEST_F(IdxFiles, AHeaderIsCheckedByteByByte) {
  const auto refused = [&](const std::string& content) {
    write("x", content);
    return mistake_by([&] { read_idx(folder_ / "x"); });
  };
  using namespace std::string_literals;
  EXPECT_EQ(refused("\1\0\x08\1\0\0\0\1a"s), "x: not an IDX file: magic number 0x01000801");
  EXPECT_EQ(refused("\0\1\x08\1\0\0\0\1a"s), "x: not an IDX file: magic number 0x00010801");
  EXPECT_EQ(refused("\0\0\x08\1\0\0\0\1a"s), "no mistake");
  EXPECT_EQ(refused("\0\0\x08\1\0\0\0\0"s), "no mistake") << "it holds nothing";
  // Sixteen GiB are the most, whatever the order of the dimensions.
  const std::string most = "\0\0\x08\2\0\4\0\0\0\1\0\0"s;  // 2^18 x 2^16
  EXPECT_EQ(refused(most),
            "x: truncated: its content should take 17179869184 bytes, the file has 12");
  EXPECT_EQ(refused("\0\0\x08\3\0\0\0\0\xff\xff\xff\xff\0\0\0\1"s), "no mistake");
  // DEFLATE could make 1032 bytes of each byte of this file.
  EXPECT_EQ(refused("\0\0\x08\1\0\0\x20\x50z"s),  // 8272 bytes
            "x: truncated: its content should take 8272 bytes, 1 are there");
  EXPECT_EQ(refused("\0\0\x08\1\0\0\x28\x50z"s),  // 10320 bytes
            "x: truncated: its content should take 10320 bytes, the file has 9");
}

TEST_F(IdxFiles, MnistsFilesAreAsLongAsTheirShapes) {
  const auto files = mnist_files();
  ASSERT_EQ(files.size(), 4u);
  for (const auto& each : files) {
    const std::int64_t count = each.wanted.name.starts_with("train") ? 60'000 : 10'000;
    const bool is_images = each.wanted.name.find("idx3") != std::string::npos;
    EXPECT_EQ(each.wanted.most_bytes, is_images ? 16 + count * 28 * 28 : 8 + count);
    EXPECT_EQ(each.wanted.sha256.size(), 64u);
    EXPECT_EQ(each.wanted.counted, Counted::content);
  }
}

TEST_F(IdxFiles, APackedFileIsReadToItsEndAndAgain) {
  const auto file = write("plain", "abcdef");
  PackedFile stream(file);
  std::string bytes(4, ' ');
  EXPECT_EQ(stream.read(bytes.data(), 4), 4u);
  EXPECT_EQ(stream.read(bytes.data(), 4), 2u);
  EXPECT_EQ(stream.read(bytes.data(), 4), 0u);
  stream.rewind();
  EXPECT_EQ(stream.read(bytes.data(), 3), 3u);
  EXPECT_EQ(bytes, "abcd") << "the first three anew";
  EXPECT_TRUE(stream.is_unchanged());
  const auto time = fs::last_write_time(file);
  fs::last_write_time(file, time + std::chrono::seconds(1));
  EXPECT_FALSE(stream.is_unchanged()) << "seconds";
  fs::last_write_time(file, time + std::chrono::nanoseconds(1));
  EXPECT_FALSE(stream.is_unchanged()) << "nanoseconds";
  std::ofstream(file, std::ios::app) << "g";
  fs::last_write_time(file, time);
  EXPECT_FALSE(stream.is_unchanged()) << "size";
  fs::resize_file(file, 6);
  fs::last_write_time(file, time);
  EXPECT_TRUE(stream.is_unchanged());
}

TEST_F(IdxFiles, APackedFileIsClosedWithItsStream) {
  const auto file = write("plain", "abcdef");
  const auto next = [&] {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    close(descriptor);
    return descriptor;
  };
  const int before = next();
  { const PackedFile stream(file); }
  EXPECT_EQ(next(), before);
}

TEST_F(IdxFiles, APackedFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(mistake_by([&] { PackedFile(folder_ / "none"); }),
            "cannot read none: No such file or directory");
  char byte = 0;
  EXPECT_EQ(mistake_by([&] {
              fs::create_directory(folder_ / "folder");
              PackedFile(folder_ / "folder").read(&byte, 1);
            }),
            "cannot read folder: Is a directory");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const int writer = ::open((folder_ / "pipe").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::write(writer, "ab", 2), 2);
  PackedFile pipe(folder_ / "pipe");
  close(writer);
  EXPECT_EQ(pipe.read(&byte, 1), 1u);
  EXPECT_EQ(mistake_by([&] { pipe.rewind(); }), "cannot read pipe again: Illegal seek");
}

TEST_F(IdxFiles, WhatIsPackedIsReadWholeHoweverMuchItIs) {
  EXPECT_EQ(read_packed(write("plain", "abc")), "abc");
  EXPECT_EQ(read_packed(write("empty", "")), "");
  const std::string large = std::string(5 << 20, 'a') + "end";  // packs to a thousandth
  gzFile stream = gzopen((folder_ / "large.gz").c_str(), "wb");
  gzwrite(stream, large.data(), static_cast<unsigned>(large.size()));
  gzclose(stream);
  EXPECT_EQ(read_packed(folder_ / "large.gz"), large);
  const auto damaged = write("damaged.gz", "\x1f\x8b\x08no gzip after all, however it begins");
  EXPECT_TRUE(
      mistake_by([&] { read_packed(damaged); }).starts_with("damaged.gz: damaged gzip data: "));
  fs::resize_file(folder_ / "large.gz", 100);
  EXPECT_EQ(mistake_by([&] { read_packed(folder_ / "large.gz"); }),
            "large.gz: truncated gzip data");
}
