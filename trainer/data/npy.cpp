// SPDX-License-Identifier: MIT
// Data sets of arrays as NumPy's `save` writes them: a user's files, or what his function gives.
// One begins with a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/data/data_offer.h"
#include "trainer/data/data_set.h"
#include "trainer/data/idx.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;  // a header that says more is damaged
constexpr const char* kUnlike = "has another shape or type than that of the training";
constexpr std::int64_t kAtOnce = 1 << 18;  // numbers

constexpr std::pair<std::string_view, at::ScalarType> kTypes[] = {
    {"|u1", at::kByte}, {"|b1", at::kBool},  {"<i4", at::kInt},   {"<i8", at::kLong},
    {"<f2", at::kHalf}, {"<f4", at::kFloat}, {"<f8", at::kDouble}};

/// An array whose numbers have not been read.
struct Array {
  std::string name;  ///< the name in messages
  const ByteSource& source;
  at::ScalarType type{};
  Shape shape{};           ///< the first side is that of the rows
  std::int64_t bytes = 0;  ///< the bytes of all numbers

  std::int64_t rows() const { return shape[0]; }
  std::int64_t values() const { return count_values(shape) / shape[0]; }  ///< those of a row
  [[noreturn]] void refuse(const std::string& why, const std::string& hint = "") const {
    throw UsageError(fmt::format("{} {}", name, why), hint);
  }
};

/// The text between the two in a header; empty if they are not there.
std::string_view text_between(std::string_view header, std::string_view begin, char end) {
  const auto at = header.find(begin);
  if (at == header.npos) return {};
  const auto text = header.substr(at + begin.size());
  return text.substr(0, text.find(end));
}

void parse_header(std::string_view header, Array& array) {
  const auto type = text_between(header, "'descr': '", '\'');
  const auto* const known = std::ranges::find(kTypes, type, [](auto& each) { return each.first; });
  if (known == std::end(kTypes)) {
    array.refuse(
        fmt::format("holds numbers of type {}", type.empty() ? "object" : type),
        "save array.astype(\"float32\"), or \"uint8\" for pictures, \"int64\" for classes");
  }
  if (text_between(header, "'fortran_order': ", ',') != "False") {
    array.refuse("has its columns one after another", "save numpy.ascontiguousarray(array)");
  }
  array.type = known->second;
  array.bytes = static_cast<std::int64_t>(at::elementSize(array.type));
  std::string sides(text_between(header, "'shape': (", ')'));
  std::erase(sides, ' ');
  for (std::string_view left = sides; !left.empty();) {
    const auto end = std::min(left.find(','), left.size());
    const auto side = parse_whole(left.substr(0, end), 1, kMostBytes / array.bytes);
    if (!side) break;
    array.shape.push_back(*side);
    array.bytes *= *side;
    left.remove_prefix(std::min(end + 1, left.size()));
    if (left.empty()) return;
  }
  array.refuse(fmt::format("has the shape ({})", sides), "its first side is that of the samples");
}

/// With its header read.
Array open_array(const std::string& name, const ByteSource& source) {
  Array array{name, source};
  std::uint8_t start[12] = {};  // the magic, a version of two bytes, the header's length
  source(start, 10);
  const auto version = start[6];
  if (std::string_view(reinterpret_cast<char*>(start), 6) != "\x93NUMPY" || version > 3) {
    array.refuse("is no array of NumPy's", "numpy.save writes arrays");
  }
  if (version > 1) source(start + 10, 2);
  std::string header(start[8] | start[9] << 8U | start[10] << 16U, '\0');
  source(header.data(), header.size());
  parse_header(header, array);
  return array;
}

/// [rows, values]. The numbers must be finite, or classes from 0.
at::Tensor read_numbers(const Array& array, at::ScalarType type, const SampleMemory& memory) {
  const at::Tensor table = empty_in(memory, {array.rows(), array.values()}, type);
  const at::Tensor all = table.view(-1);
  for (std::int64_t begin = 0; begin < all.numel(); begin += kAtOnce) {
    const at::Tensor part = all.slice(0, begin, begin + kAtOnce);
    const at::Tensor read = array.type == type ? part : at::empty(part.sizes(), array.type);
    array.source(read.data_ptr(), read.nbytes());
    if (array.type != type) part.copy_(read);
    const at::Tensor bad = type == at::kFloat ? at::isfinite(part).logical_not() : part.lt(0);
    if (!bad.any().item<bool>()) continue;
    const auto where = bad.nonzero()[0].item<std::int64_t>();
    array.refuse(fmt::format("has {} in row {}", read[where].item<double>(),
                             (begin + where) / array.values()),
                 "inputs and values are finite, classes begin at 0");
  }
  return table;
}

/// `shape` is that of the training's samples; empty: these are they.
at::Tensor read_inputs(const Array& array, const SampleMemory& memory, Shape& shape) {
  Shape sample(array.shape.begin() + 1, array.shape.end());
  if (sample.empty()) sample = {1};
  if (sample.size() == 2) sample.insert(sample.begin(), 1);
  if (sample.size() > 3) {
    array.refuse(fmt::format("has the shape ({})", fmt::join(array.shape, ", ")),
                 "a sample is [values], [rows, columns] or [channels, rows, columns]");
  }
  if (shape.empty()) shape = sample;
  if (sample != shape) array.refuse(kUnlike);
  return read_numbers(array, array.type == at::kByte ? at::kByte : at::kFloat, memory);
}

at::Tensor read_targets(const Array& array, std::int64_t samples, TargetKind kind,
                        const SampleMemory& memory) {
  if (array.rows() != samples) {
    array.refuse(fmt::format("has {} rows for {} samples", array.rows(), samples));
  }
  if (kind == TargetKind::values) return read_numbers(array, at::kFloat, memory);
  if (at::isFloatingType(array.type) || array.values() != 1) {
    array.refuse("has no whole number for each sample", "save array.astype(\"int64\")");
  }
  return read_numbers(array, at::kLong, memory).squeeze(1);
}

ByteSource open_file(const std::filesystem::path& path) {
  return [path, file = std::make_shared<PackedFile>(path)](void* into, std::size_t size) {
    if (file->read(into, size) == size) return;
    throw UsageError(fmt::format("{} is cut short, or no array of NumPy's", path.string()),
                     "numpy.save writes arrays");
  };
}

void check_test(const Array& array, const at::Tensor& test, const at::Tensor& train,
                std::int64_t classes) {
  if (test.dtype() != train.dtype() || test.sizes().slice(1) != train.sizes().slice(1)) {
    array.refuse(kUnlike);
  }
  if (test.scalar_type() != at::kLong || test.max().item<std::int64_t>() < classes) return;
  array.refuse(fmt::format("has a class above {}, the training's highest", classes - 1));
}

}  // namespace

DataSets load_arrays(const DataSettings& settings, const SampleMemory& memory) {
  const bool has_files = settings.source == DataSource::npy;
  const TargetKind kind = settings.files.targets;
  const int count = kind == TargetKind::none ? 1 : 2;
  DataSets sets;
  const auto load = [&](DataSet& set, const char* name) {
    const bool is_test = &set == &sets.test;
    ByteSource source;
    if (!has_files) source = open_iterator(settings, name, count);
    for (int i = 0; i < count; ++i) {
      auto what = fmt::format("data.iterator: {}(\"{}\"): its array of {}", settings.iterator, name,
                              i == 0 ? "inputs" : "targets");
      if (has_files) {
        what = settings.files.paths[static_cast<std::size_t>(count * is_test + i)];
        source = open_file(what);
      }
      const Array array = open_array(what, source);
      // Before memory is taken for it: DEFLATE makes 1032 bytes of one at the most.
      if (has_files &&
          array.bytes / 1032 > static_cast<std::int64_t>(std::filesystem::file_size(what)))
        array.refuse("is shorter than it says");
      set.targets = i == 0 ? read_inputs(array, memory, sets.shape)
                           : read_targets(array, set.inputs.size(0), kind, memory);
      if (i == 0) set.inputs = set.targets;
      const at::Tensor& train = i == 0 ? sets.train.inputs : sets.train.targets;
      if (is_test) check_test(array, set.targets, train, sets.outputs);
      if (!is_test)
        sets.outputs = train.dim() == 1 ? train.max().item<std::int64_t>() + 1 : train.size(1);
    }
  };
  load(sets.train, "train");
  load(sets.test, "test");
  return sets;
}

}  // namespace dtool::trainer
