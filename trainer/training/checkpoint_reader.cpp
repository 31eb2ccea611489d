// SPDX-License-Identifier: MIT
// The file is read in parts of kPartBytes, whatever tensors lie in them, so that many small tensors
// take one exchange. Before each part rank 0 says in the run's store that it has read it: a
// collective operation that waited for the disk could run into its limit.
#include "trainer/training/checkpoint_reader.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "ssh/wire/words.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr std::uint64_t kPartBytes = 16 << 20;

struct NamedType {
  const char* name;
  at::ScalarType type;
};

constexpr std::array<NamedType, 10> kTypes = {{{"F32", at::kFloat},
                                               {"F64", at::kDouble},
                                               {"F16", at::kHalf},
                                               {"BF16", at::kBFloat16},
                                               {"I64", at::kLong},
                                               {"I32", at::kInt},
                                               {"I16", at::kShort},
                                               {"I8", at::kChar},
                                               {"U8", at::kByte},
                                               {"BOOL", at::kBool}}};

/// The first bytes of the archives that former versions wrote. As the length of a header they would
/// be larger than any may be.
constexpr std::string_view kFormerMagic = "PK\3\4";

/// The header's bytes, with their length.
std::string read_header(const CheckpointFile& file) {
  std::string bytes(std::min(safetensors::kLengthBytes, file.size()), '\0');
  file.read(0, bytes.data(), bytes.size());
  std::uint64_t size = 0;
  try {
    size = safetensors::header_size(bytes, file.size());
  } catch (const safetensors::Malformed&) {
    if (!bytes.starts_with(kFormerMagic)) throw;
    throw UsageError(fmt::format("{} is a checkpoint of a former format", file.name()),
                     "dtool-trainer 0.1.0 wrote it, and only that version goes on with it");
  }
  bytes.resize(size);
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

std::string say(const CheckpointFile& file, const safetensors::Malformed& problem) {
  return fmt::format("{} is no checkpoint: {}", file.name(), problem.what());
}

}  // namespace

at::ScalarType type_of(const safetensors::Entry& entry) {
  const auto found =
      std::ranges::find_if(kTypes, [&](const NamedType& each) { return each.name == entry.dtype; });
  if (found == kTypes.end()) {
    throw UsageError(
        fmt::format("{} is of type {}, which LibTorch lacks", entry.name, entry.dtype));
  }
  return found->type;
}

const char* dtype_of(at::ScalarType type) {
  const auto found = std::ranges::find(kTypes, type, &NamedType::type);
  return found == kTypes.end() ? nullptr : found->name;
}

CheckpointFile::CheckpointFile(const std::filesystem::path& file)
    : name_(file.string()), file_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_) return;
  throw std::system_error(errno, std::generic_category(), "cannot read " + name_);
}

std::uint64_t CheckpointFile::size() const {
  struct stat found {};
  if (fstat(file_.get(), &found) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot read " + name_);
  }
  return static_cast<std::uint64_t>(found.st_size);
}

void CheckpointFile::read(std::uint64_t offset, char* into, std::size_t size) const {
  while (size > 0) {
    const auto part = pread(file_.get(), into, size, static_cast<off_t>(offset));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) throw std::system_error(errno, std::generic_category(), "cannot read " + name_);
    if (part == 0) throw std::runtime_error(fmt::format("{} has become shorter", name_));
    into += part;
    offset += static_cast<std::uint64_t>(part);
    size -= static_cast<std::size_t>(part);
  }
}

std::string fault_of(const CheckpointFile& file) {
  try {
    safetensors::parse_header(read_header(file), file.size());
    return {};
  } catch (const safetensors::Malformed& problem) {
    return say(file, problem);
  }
}

CheckpointReader::CheckpointReader(const Group& group, std::string what, CheckpointFile file)
    : group_(group), what_(std::move(what)), file_(std::move(file)) {
  std::string header;
  if (group_.rank == 0 && file_.is_open()) {
    name_ = file_.name();
    file_size_ = file_.size();
    try {
      header = read_header(file_);
      header_ = safetensors::parse_header(header, file_size_);
    } catch (const safetensors::Malformed& problem) {
      throw UsageError(say(file_, problem));
    }
  }
  wait_for_rank_0(group_, what_);
  name_ = broadcast_text(group_, name_);
  if (!has_file()) return;
  header = broadcast_text(group_, header);
  const auto size = broadcast_text(group_, fmt::format("{}", file_size_));
  file_size_ = host::parse_number<std::uint64_t>(size).value();
  if (group_.rank != 0) header_ = safetensors::parse_header(header, file_size_);
}

/// Makes the part that begins at `offset` this rank's `part_`.
void CheckpointReader::read_part(std::uint64_t offset) {
  part_begin_ = offset;
  part_end_ = offset + std::min(kPartBytes, file_size_ - offset);
  const auto size = static_cast<std::int64_t>(part_end_ - part_begin_);
  if (!part_.defined()) {
    const auto most = std::min(kPartBytes, file_size_ - header_.size);
    part_ = at::empty({static_cast<std::int64_t>(most)}, at::kByte);
  }
  const at::Tensor bytes = part_.narrow(0, 0, size);
  if (group_.rank == 0) {
    file_.read(offset, reinterpret_cast<char*>(bytes.data_ptr<std::uint8_t>()),
               static_cast<std::size_t>(size));
  }
  wait_for_rank_0(group_, fmt::format("{}/{}", what_, ++parts_));
  if (group_.device.is_cpu()) {
    broadcast(group_, bytes);
    return;
  }
  const at::Tensor moved = bytes.to(group_.device);
  broadcast(group_, moved);
  bytes.copy_(moved);
}

void CheckpointReader::read_bytes(std::uint64_t offset, char* into, std::uint64_t size) {
  while (size > 0) {
    if (offset < part_begin_ || offset >= part_end_) read_part(offset);
    const auto here = std::min(size, part_end_ - offset);
    std::memcpy(into, part_.data_ptr<std::uint8_t>() + (offset - part_begin_), here);
    into += here;
    offset += here;
    size -= here;
  }
}

void CheckpointReader::read(const safetensors::Entry& entry, at::Tensor into) {
  const c10::NoGradGuard no_gradients;
  const auto type = type_of(entry);
  const bool in_place = into.is_cpu() && into.is_contiguous() && into.scalar_type() == type;
  const at::Tensor values = in_place ? into : at::empty(into.sizes(), type);
  read_bytes(header_.size + entry.begin, static_cast<char*>(values.data_ptr()),
             entry.end - entry.begin);
  if (!in_place) into.copy_(values);
}

at::Tensor CheckpointReader::read(const safetensors::Entry& entry) {
  at::Tensor made;
  try {
    made = at::empty(entry.shape, type_of(entry));
  } catch (const c10::Error& problem) {
    throw UsageError(fmt::format("{}: {}", entry.name, first_line(problem)));
  }
  read(entry, made);
  return made;
}

}  // namespace dtool::trainer
