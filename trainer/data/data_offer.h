// SPDX-License-Identifier: MIT
// What the rank that has loaded a machine's data tells the machine's other ranks about it.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/ranks/shared_memory.h"

namespace dtool::trainer {

// Memory for the numbers of a data set that the ranks of a machine share, and how one rank tells
// the others where they lie.

/// Where values of a rank lie, for the machine's other ranks.
struct SharedPlace {
  std::string name;      ///< the name for SharedMemory::open_frozen
  std::string nonce;     ///< the memory begins with it, so that no other memory is taken for it
  std::size_t size = 0;  ///< the size of the values, in bytes
};

/// Each piece that is asked for is shared memory of its own: for a few large ones. Throws
/// std::system_error if there is none to be had.
class SharedValues : public std::pmr::memory_resource {
 public:
  /// No values may be written from now on: what is written is this process's own. Throws as
  /// SharedMemory::freeze does.
  void freeze();

  /// Of the piece that begins at `values`; valid until `forget_names`.
  SharedPlace place_of(const void* values) const;

  /// Once every rank has opened them.
  void forget_names();

 private:
  struct Piece {
    SharedMemory memory;
    std::string nonce;
  };

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* values, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::list<Piece> pieces_;
};

/// Values of another rank, as long as it lives.
class OpenedValues {
 public:
  /// Absent if they cannot be seen from here.
  static std::optional<OpenedValues> open(const SharedPlace& place);

  void* data() const;
  std::size_t size() const;  ///< the size in bytes

 private:
  explicit OpenedValues(SharedMemory memory) : memory_(std::move(memory)) {}

  SharedMemory memory_;
};

// The offer.

enum class Numbers { uint8, int64, float32 };

/// The size of one, in bytes.
std::size_t size_of(Numbers numbers);

/// A tensor, row by row.
struct OfferedTensor {
  Numbers numbers = Numbers::float32;
  std::vector<std::int64_t> shape;
  SharedPlace place;
};

/// Training inputs and targets, test inputs and targets. Some may lie in the same place.
struct DataOffer {
  std::vector<std::int64_t> sample_shape;
  std::int64_t outputs = 0;
  std::array<OfferedTensor, 4> tensors;
};

/// As JSON.
std::string to_text(const DataOffer& offer);

/// Absent if something is missing or of another form, or a tensor takes more than its place has.
std::optional<DataOffer> parse_offer(std::string_view text);

/// A whole number from `least` to `most`; the text must be nothing else.
std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t least,
                                        std::int64_t most);

}  // namespace dtool::trainer
