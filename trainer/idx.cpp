// zlib's gz functions read plain files too, so one path serves both.
#include "trainer/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "trainer/usage_error.h"

namespace dtool::trainer {
namespace {

using GzFile = std::unique_ptr<gzFile_s, decltype(&gzclose_r)>;

constexpr unsigned kUnsignedBytes = 0x08;  // the third byte of the magic number: the element type
constexpr std::int64_t kMostBytes = 1LL << 34;  // a header that says more is damaged

/// Reads exactly `size` bytes or throws.
void read_exactly(gzFile_s* stream, const std::filesystem::path& file, std::uint8_t* into,
                  std::int64_t size, const char* what) {
  for (std::int64_t done = 0; done < size;) {
    const auto part = static_cast<unsigned>(std::min<std::int64_t>(size - done, 1 << 30));
    const int got = gzread(stream, into + done, part);
    int error = Z_OK;
    const char* reason = gzerror(stream, &error);
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END && error != Z_BUF_ERROR)) {
      throw UsageError(fmt::format("{}: damaged gzip data: {}", file.string(), reason));
    }
    if (got == 0) {
      throw UsageError(fmt::format("{}: truncated: {} should take {} bytes, {} are there",
                                   file.string(), what, size, done));
    }
    done += got;
  }
}

std::int64_t big_endian(const std::uint8_t* bytes) {
  return std::int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/// The file itself or its gzip form; empty when neither is there.
std::filesystem::path find(const std::filesystem::path& folder, const std::string& name) {
  for (const auto& each : {folder / name, folder / (name + ".gz")}) {
    if (std::filesystem::exists(each)) return each;
  }
  return {};
}

LabelledImages read_pair(const std::filesystem::path& image_file,
                         const std::filesystem::path& label_file) {
  IdxArray images = read_idx(image_file);
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
  return {images.shape[0], images.shape[1] * images.shape[2], std::move(images.values),
          std::move(labels.values)};
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file) {
  const GzFile stream(gzopen(file.c_str(), "rb"), gzclose_r);
  if (!stream) throw UsageError(fmt::format("cannot read {}", file.string()));
  gzbuffer(stream.get(), 1 << 18);

  std::uint8_t magic[4];
  read_exactly(stream.get(), file, magic, 4, "the magic number");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedBytes || magic[3] == 0) {
    throw UsageError(fmt::format("{}: not an IDX file of bytes: magic number 0x{:08x}",
                                 file.string(), big_endian(magic)),
                     "images begin with 0x00000803, labels with 0x00000801");
  }
  IdxArray array;
  std::int64_t size = 1;
  for (int i = 0; i < magic[3]; ++i) {
    std::uint8_t bytes[4];
    read_exactly(stream.get(), file, bytes, 4, "a dimension");
    array.shape.push_back(big_endian(bytes));
    if (array.shape.back() > kMostBytes / std::max<std::int64_t>(size, 1)) {
      throw UsageError(fmt::format("{}: its header says more than 16 GiB", file.string()));
    }
    size *= array.shape.back();
  }
  array.values.resize(static_cast<std::size_t>(size));
  read_exactly(stream.get(), file, array.values.data(), size, "its content");
  std::uint8_t more = 0;
  if (gzread(stream.get(), &more, 1) == 1) {
    throw UsageError(
        fmt::format("{}: longer than the {} bytes that its header says", file.string(), size));
  }
  return array;
}

TrainAndTest read_mnist_folder(const std::filesystem::path& folder) {
  const std::string names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  std::filesystem::path files[4];
  for (int i = 0; i < 4; ++i) {
    files[i] = find(folder, names[i]);
    if (!files[i].empty()) continue;
    throw UsageError(
        fmt::format("no {} in '{}'", names[i], folder.string()),
        fmt::format(
            "put {}, {}, {} and {} there, plain or as .gz, or name their folder in data.path "
            "or DTOOL_MNIST_DIR",
            names[0], names[1], names[2], names[3]));
  }
  TrainAndTest data{read_pair(files[0], files[1]), read_pair(files[2], files[3]), 0};
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

}  // namespace dtool::trainer
