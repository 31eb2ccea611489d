// SPDX-License-Identifier: MIT
// A header comes from an unknown file. So nothing in it is believed: a number takes no memory, and
// a text is not deeper or longer than a header may be.
#include "trainer/training/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace dtool::trainer::safetensors {
namespace {

using nlohmann::json;

// The same limit as in the format's own library.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr int kDeepest = 3;  // {"name": {"shape": [
constexpr const char* kMetadata = "__metadata__";

struct ItemSize {
  std::string_view dtype;
  std::uint64_t bytes;
};

constexpr std::array<ItemSize, 13> kItemSizes = {{{"BOOL", 1},
                                                  {"U8", 1},
                                                  {"I8", 1},
                                                  {"U16", 2},
                                                  {"I16", 2},
                                                  {"F16", 2},
                                                  {"BF16", 2},
                                                  {"U32", 4},
                                                  {"I32", 4},
                                                  {"F32", 4},
                                                  {"U64", 8},
                                                  {"I64", 8},
                                                  {"F64", 8}}};

std::optional<std::uint64_t> item_size(std::string_view dtype) {
  const auto found = std::ranges::find(kItemSizes, dtype, &ItemSize::dtype);
  if (found == kItemSizes.end()) return std::nullopt;
  return found->bytes;
}

/// Absent where the number is larger than any file.
std::optional<std::uint64_t> byte_count(const Entry& entry) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = item_size(entry.dtype).value();
  for (const auto each : entry.shape) {
    if (each == 0) return 0;
  }
  for (const auto each : entry.shape) {
    if (bytes > kMost / static_cast<std::uint64_t>(each)) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(each);
  }
  return bytes;
}

/// JSON lets a key come twice, and the reader would keep the last one.
class NoKeyTwice {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& value) {
    if (depth > kDeepest) throw Malformed("its header is nested too deeply");
    if (event == json::parse_event_t::object_start) keys_[static_cast<std::size_t>(depth)].clear();
    if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_[static_cast<std::size_t>(depth) - 1].insert(key).second) {
        throw Malformed(fmt::format("its header has '{}' twice", key));
      }
    }
    return true;
  }

 private:
  /// The keys of the object open at each depth.
  std::array<std::set<std::string>, kDeepest + 1> keys_;
};

json parse_json(std::string_view text) {
  if (!text.starts_with('{')) throw Malformed("its header does not begin with '{'");
  try {
    // By reference, since the parser copies its callback.
    NoKeyTwice no_key_twice;
    return json::parse(text.begin(), text.end(), std::ref(no_key_twice));
  } catch (const json::exception&) {
    throw Malformed("its header is no JSON");
  }
}

std::uint64_t whole_number(const json& value, const std::string& where) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
    throw Malformed(fmt::format("{} has something else than whole numbers", where));
  }
  return value.get<std::uint64_t>();
}

const json& member(const json& object, const char* key, const std::string& name) {
  const auto found = object.find(key);
  if (found == object.end()) throw Malformed(fmt::format("'{}' has no {}", name, key));
  return *found;
}

Entry read_entry(const std::string& name, const json& object) {
  if (!object.is_object() || object.size() != 3) {
    throw Malformed(fmt::format("'{}' is not described by dtype, shape and data_offsets", name));
  }
  Entry entry{name, {}, {}};
  const json& dtype = member(object, "dtype", name);
  if (!dtype.is_string() || !item_size(dtype.get_ref<const std::string&>())) {
    throw Malformed(fmt::format("'{}' is of an unknown type", name));
  }
  entry.dtype = dtype.get<std::string>();
  const json& shape = member(object, "shape", name);
  const json& offsets = member(object, "data_offsets", name);
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2) {
    throw Malformed(fmt::format("'{}' has no shape or no two offsets", name));
  }
  for (const json& each : shape) {
    entry.shape.push_back(static_cast<std::int64_t>(whole_number(each, "the shape of " + name)));
  }
  entry.begin = whole_number(offsets[0], "the place of " + name);
  entry.end = whole_number(offsets[1], "the place of " + name);
  return entry;
}

Metadata read_metadata(const json& object) {
  if (!object.is_object()) throw Malformed("its metadata is no table");
  Metadata metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) throw Malformed(fmt::format("its metadata '{}' is no text", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// The entries, in the bytes' order, are laid side by side from 0 to `data_size`.
void check_places(const std::vector<Entry>& entries, std::uint64_t data_size) {
  std::uint64_t at = 0;
  for (const Entry& each : entries) {
    if (each.begin != at || each.end < each.begin) {
      throw Malformed(
          fmt::format("'{}' does not begin where the tensor before it ends", each.name));
    }
    if (byte_count(each) != each.end - each.begin) {
      throw Malformed(fmt::format("'{}' has another number of bytes than its shape", each.name));
    }
    at = each.end;
  }
  if (at != data_size) {
    throw Malformed(fmt::format("its tensors should take {} bytes, {} are there", at, data_size));
  }
}

}  // namespace

std::uint64_t header_size(std::string_view start, std::uint64_t file_size) {
  if (start.size() < kLengthBytes || file_size < kLengthBytes) throw Malformed("it is too short");
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | static_cast<unsigned char>(start[i]);
  }
  if (length > kLongestHeader) throw Malformed("its first bytes are no length of a header");
  if (length > file_size - kLengthBytes) throw Malformed("it ends within its header");
  return kLengthBytes + length;
}

Header parse_header(std::string_view bytes, std::uint64_t file_size) {
  Header header;
  header.size = header_size(bytes.substr(0, kLengthBytes), file_size);
  if (bytes.size() < header.size) throw Malformed("it ends within its header");
  const json all = parse_json(bytes.substr(kLengthBytes, header.size - kLengthBytes));
  for (const auto& [name, value] : all.items()) {
    if (name == kMetadata) {
      header.metadata = read_metadata(value);
    } else {
      header.entries.push_back(read_entry(name, value));
    }
  }
  std::ranges::sort(header.entries, {},
                    [](const Entry& each) { return std::tie(each.begin, each.end, each.name); });
  check_places(header.entries, file_size - header.size);
  return header;
}

std::string header_text(const std::vector<Entry>& entries, const Metadata& metadata) {
  nlohmann::ordered_json all;
  all[kMetadata] = metadata;
  for (const Entry& each : entries) {
    all[each.name] = {
        {"dtype", each.dtype}, {"shape", each.shape}, {"data_offsets", {each.begin, each.end}}};
  }
  std::string text = all.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes,
              ' ');  // aligns what follows
  std::string length;
  for (unsigned i = 0; i < kLengthBytes; ++i) {
    length.push_back(static_cast<char>(text.size() >> (8U * i) & 0xffU));
  }
  return length + text;
}

void append(std::vector<Entry>& entries, std::string name, std::string dtype,
            std::vector<std::int64_t> shape) {
  Entry entry{std::move(name), std::move(dtype), std::move(shape)};
  entry.begin = entries.empty() ? 0 : entries.back().end;
  const auto bytes = byte_count(entry);
  assert(bytes);
  entry.end = entry.begin + bytes.value_or(0);
  entries.push_back(std::move(entry));
}

}  // namespace dtool::trainer::safetensors
