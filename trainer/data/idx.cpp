// SPDX-License-Identifier: MIT
// Parses bytes to shapes; malformed files are refused before memory is allocated for them.
#include "trainer/data/idx.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

constexpr std::int64_t kMostBytes = 1LL << 34;  // a header that says more is damaged

/// The third byte of the magic number, in words.
const char* element_type(int code) {
  switch (code) {
    case 0x08:
      return "unsigned bytes";
    case 0x09:
      return "signed bytes";
    case 0x0b:
      return "16-bit whole numbers";
    case 0x0c:
      return "32-bit whole numbers";
    case 0x0d:
      return "32-bit floats";
    case 0x0e:
      return "64-bit floats";
    default:
      return nullptr;
  }
}

/// A file that is being read.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file), stream_(file) {}

  /// Reads exactly `size` bytes.
  void read(std::uint8_t* into, std::size_t size, const char* what) {
    const std::size_t got = stream_.read(into, size);
    if (got == size) return;
    fail(fmt::format("truncated: {} should take {} bytes, {} are there", what, size, got));
  }

  /// Refuses a size that the file cannot unpack to: DEFLATE makes 1032 bytes of one at the most.
  void expect(std::int64_t size) {
    const auto packed = static_cast<std::int64_t>(std::filesystem::file_size(file_));
    if (size / 1032 <= packed) return;
    fail(fmt::format("truncated: its content should take {} bytes, the file has {}", size, packed));
  }

  bool at_end() {
    std::uint8_t more = 0;
    return stream_.read(&more, 1) == 0;
  }

  [[noreturn]] void fail(const std::string& why, const std::string& hint = "") const {
    throw UsageError(fmt::format("{}: {}", file_.string(), why), hint);
  }

 private:
  std::filesystem::path file_;
  PackedFile stream_;
};

std::int64_t big_endian(const std::uint8_t* bytes) {
  return std::int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

LabelledImages read_pair(const std::filesystem::path& image_file,
                         const std::filesystem::path& label_file,
                         std::pmr::memory_resource* memory) {
  IdxArray images = read_idx(image_file, memory);
  IdxArray labels = read_idx(label_file);
  if (images.shape.size() != 3) {
    throw UsageError(fmt::format("{}: holds {} dimensions, images have 3", image_file.string(),
                                 images.shape.size()));
  }
  if (labels.shape.size() != 1) {
    throw UsageError(fmt::format("{}: holds {} dimensions, labels have 1", label_file.string(),
                                 labels.shape.size()));
  }
  if (images.shape[0] != labels.shape[0]) {
    throw UsageError(fmt::format("{} holds {} images, but {} holds {} labels", image_file.string(),
                                 images.shape[0], label_file.string(), labels.shape[0]));
  }
  if (images.values.empty())
    throw UsageError(fmt::format("{}: holds no image", image_file.string()));
  const auto rows = images.shape[1];
  const auto columns = images.shape[2];
  return {images.shape[0],         rows, columns, rows * columns, std::move(images.values),
          std::move(labels.values)};
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file, std::pmr::memory_resource* memory) {
  Reader reader(file);
  std::uint8_t magic[4];
  reader.read(magic, sizeof magic, "the magic number");
  const char* type = element_type(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || type == nullptr || magic[3] == 0) {
    reader.fail(fmt::format("not an IDX file: magic number 0x{:08x}", big_endian(magic)),
                "images begin with 0x00000803, labels with 0x00000801");
  }
  if (magic[2] != 0x08) reader.fail(fmt::format("holds {}, not unsigned bytes", type));
  IdxArray array{{}, std::pmr::vector<std::uint8_t>(memory)};
  std::int64_t size = 1;
  for (int i = 0; i < magic[3]; ++i) {
    std::uint8_t bytes[4];
    reader.read(bytes, sizeof bytes, "a dimension");
    array.shape.push_back(big_endian(bytes));
    if (array.shape.back() > kMostBytes / std::max<std::int64_t>(size, 1)) {
      reader.fail("its header says more than 16 GiB");
    }
    size *= array.shape.back();
  }
  reader.expect(size);
  array.values.resize(static_cast<std::size_t>(size));
  reader.read(array.values.data(), array.values.size(), "its content");
  if (!reader.at_end()) {
    reader.fail(fmt::format("longer than the {} bytes that its header says", size));
  }
  return array;
}

TrainAndTest read_image_files(const std::vector<std::filesystem::path>& files,
                              std::pmr::memory_resource* memory) {
  TrainAndTest data{read_pair(files[0], files[1], memory), read_pair(files[2], files[3], memory),
                    0};
  if (data.train.pixels != data.test.pixels) {
    throw UsageError(fmt::format("{} has images of {} pixels, {} of {}", files[0].string(),
                                 data.train.pixels, files[2].string(), data.test.pixels));
  }
  const auto highest = [](const LabelledImages& set) {
    return *std::ranges::max_element(set.labels);
  };
  data.classes = highest(data.train) + 1;
  if (highest(data.test) >= data.classes) {
    throw UsageError(fmt::format("{} has a label {}, {} none above {}", files[3].string(),
                                 highest(data.test), files[1].string(), data.classes - 1));
  }
  return data;
}

// zlib's gz functions pass a file that is not gzip on unchanged.

PackedFile::PackedFile(std::filesystem::path file)
    : file_(std::move(file)),
      descriptor_(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)),
      stream_(descriptor_ < 0 ? nullptr : gzdopen(descriptor_, "rb")) {
  if (stream_ == nullptr || ::fstat(descriptor_, &at_first_) != 0) {
    const int error = errno;
    if (stream_ != nullptr) {
      gzclose_r(stream_);
    } else if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
    throw UsageError(fmt::format("cannot read {}: {}", file_.string(), std::strerror(error)));
  }
  gzbuffer(stream_, 1 << 18);
}

PackedFile::~PackedFile() {
  gzclose_r(stream_);
}

std::size_t PackedFile::read(void* into, std::size_t size) {
  constexpr std::size_t kMostAtOnce = 1 << 30;
  auto* const bytes = static_cast<char*>(into);
  std::size_t done = 0;
  while (done < size) {
    const auto part = static_cast<unsigned>(std::min(size - done, kMostAtOnce));
    const int got = gzread(stream_, bytes + done, part);
    done += static_cast<std::size_t>(std::max(got, 0));
    if (got == static_cast<int>(part)) continue;
    int error = Z_OK;
    const char* reason = gzerror(stream_, &error);
    if (error == Z_BUF_ERROR) {
      throw UsageError(fmt::format("{}: truncated gzip data", file_.string()));
    }
    if (error == Z_ERRNO) {
      throw UsageError(fmt::format("cannot read {}: {}", file_.string(), std::strerror(errno)));
    }
    if (error != Z_OK && error != Z_STREAM_END) {
      throw UsageError(fmt::format("{}: damaged gzip data: {}", file_.string(), reason));
    }
    if (got <= 0) break;
  }
  return done;
}

void PackedFile::rewind() {
  if (gzrewind(stream_) == 0) return;
  throw UsageError(fmt::format("cannot read {} again: {}", file_.string(), std::strerror(errno)));
}

/// A file that was renamed has another st_ctim, and the same content.
bool PackedFile::is_unchanged() const {
  struct stat now {};
  return ::fstat(descriptor_, &now) == 0 && now.st_size == at_first_.st_size &&
         now.st_mtim.tv_sec == at_first_.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == at_first_.st_mtim.tv_nsec;
}

}  // namespace dtool::trainer
