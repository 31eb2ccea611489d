// SPDX-License-Identifier: MIT
// The header of a safetensors file (https://github.com/huggingface/safetensors): which tensors a
// checkpoint has, and where. In such a file a length of eight bytes comes first, then so many bytes
// of JSON, then the bytes of the tensors.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::trainer::safetensors {

/// A tensor: its bytes are those from `begin` up to `end`, counted from the end of the header.
struct Entry {
  std::string name;
  std::string dtype;  ///< such as F32
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

using Metadata = std::map<std::string, std::string>;

struct Header {
  std::vector<Entry> entries;  ///< the entries in the order of their bytes
  Metadata metadata;
  std::uint64_t size = 0;  ///< the place in the file where the tensors' bytes begin
};

/// A file is no safetensors file; the words go after its name.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::uint64_t kLengthBytes = 8;

/// How many bytes of a file of `file_size` bytes the header takes, with its length: `start` is the
/// file's first bytes, kLengthBytes of them. Throws Malformed.
std::uint64_t header_size(std::string_view start, std::uint64_t file_size);

/// Reads the header of a file of `file_size` bytes, whose first bytes are `bytes`: at least
/// `header_size`. Every byte after the header belongs to exactly one tensor, and each tensor has as
/// many as its shape and type take. Throws Malformed if anything else is there.
Header parse_header(std::string_view bytes, std::uint64_t file_size);

/// The bytes of such a header, with its length. The same arguments always have the same bytes.
std::string header_text(const std::vector<Entry>& entries, const Metadata& metadata);

/// Adds a tensor whose bytes follow those of the last entry. `dtype` is a known one.
void append(std::vector<Entry>& entries, std::string name, std::string dtype,
            std::vector<std::int64_t> shape);

}  // namespace dtool::trainer::safetensors
