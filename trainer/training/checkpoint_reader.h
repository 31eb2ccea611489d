// SPDX-License-Identifier: MIT
// A checkpoint's tensors, read by rank 0 for all ranks: other machines need not have the file, and
// no rank ever holds it whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "killfiles/channel/wire.h"
#include "trainer/ranks/process_group.h"
#include "trainer/training/safetensors.h"

namespace dtool::trainer {

/// An open file, or none.
class CheckpointFile {
 public:
  CheckpointFile() = default;
  /// Throws std::system_error if there is no such file.
  explicit CheckpointFile(const std::filesystem::path& file);

  bool is_open() const { return file_.is_open(); }
  const std::string& name() const { return name_; }
  std::uint64_t size() const;
  /// Throws std::runtime_error if the bytes are not there.
  void read(std::uint64_t offset, char* into, std::size_t size) const;

 private:
  std::string name_;
  host::Descriptor file_;
};

/// Why the file is no whole checkpoint, with its name; empty: its header and its size say that it
/// is one. Throws UsageError if a former version wrote it, std::system_error if it cannot be read.
std::string fault_of(const CheckpointFile& file);

/// All ranks have one, and make the same calls. Rank 0 may be as slow as its disk is: the others
/// wait without a limit.
class CheckpointReader {
 public:
  /// Reads the header. `file` is rank 0's, the other ranks' is not looked at. `what` names this
  /// reader among all of the run. Throws UsageError if rank 0's file is no safetensors file; of one
  /// in a former format it says which version wrote it.
  CheckpointReader(const Group& group, std::string what, CheckpointFile file);

  /// Whether rank 0 has given a file. Everything else is only for this case.
  bool has_file() const { return !name_.empty(); }
  const std::string& name() const { return name_; }  ///< rank 0's
  const safetensors::Header& header() const { return header_; }

  /// Fills `into` with the tensor of `entry`, one of the header's. The shapes are the same; the
  /// device and the type of the numbers may differ. Fast in the order of the entries. Throws
  /// std::runtime_error on rank 0 if the file cannot be read, CollectiveFailed.
  void read(const safetensors::Entry& entry, at::Tensor into);

  /// The tensor of `entry`, on the CPU. Throws UsageError if LibTorch has no such type or size.
  at::Tensor read(const safetensors::Entry& entry);

 private:
  void read_bytes(std::uint64_t offset, char* into, std::uint64_t size);
  void read_part(std::uint64_t offset);

  const Group& group_;
  std::string what_;
  CheckpointFile file_;
  std::string name_;
  safetensors::Header header_;
  std::uint64_t file_size_ = 0;
  at::Tensor part_;  ///< bytes of the file from `part_begin_` up to `part_end_`, on the CPU
  std::uint64_t part_begin_ = 0;
  std::uint64_t part_end_ = 0;
  std::int64_t parts_ = 0;  ///< so many were read
};

/// LibTorch's type of a tensor. Throws UsageError if LibTorch lacks it.
at::ScalarType type_of(const safetensors::Entry& entry);

/// The name of `type` in a checkpoint; null if there is none.
const char* dtype_of(at::ScalarType type);

}  // namespace dtool::trainer
