// SPDX-License-Identifier: MIT
// Before the values of a piece lies its nonce, in as much memory as keeps them aligned.
#include "trainer/data/shared_values.h"

#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string_view>

#include "trainer/launch/greeting.h"

namespace dtool::trainer {
namespace {

constexpr std::size_t kBefore = 64;
constexpr std::size_t kMostPiece = std::numeric_limits<std::int64_t>::max() - kBefore;

std::byte* values_in(const SharedMemory& memory) {
  return memory.data() + kBefore;
}

}  // namespace

void* SharedValues::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > kMostPiece || alignment > kBefore) throw std::bad_alloc();
  Piece& piece = pieces_.emplace_back(Piece{SharedMemory(kBefore + bytes), random_nonce()});
  std::memcpy(piece.memory.data(), piece.nonce.data(), piece.nonce.size());
  return values_in(piece.memory);
}

void SharedValues::do_deallocate(void* values, std::size_t /*bytes*/, std::size_t /*alignment*/) {
  pieces_.remove_if([&](const Piece& each) { return values_in(each.memory) == values; });
}

void SharedValues::freeze() {
  for (Piece& each : pieces_) each.memory.freeze();
}

SharedPlace SharedValues::place_of(const void* values) const {
  for (const Piece& each : pieces_) {
    if (values_in(each.memory) == values)
      return {each.memory.name(), each.nonce, each.memory.size() - kBefore};
  }
  throw std::logic_error("these values are not in shared memory");
}

void SharedValues::forget_names() {
  for (Piece& each : pieces_) each.memory.forget_name();
}

std::optional<OpenedValues> OpenedValues::open(const SharedPlace& place) {
  if (place.nonce.empty() || place.nonce.size() > kBefore || place.size > kMostPiece)
    return std::nullopt;
  auto memory = SharedMemory::open_frozen(place.name, kBefore + place.size);
  if (!memory) return std::nullopt;
  const std::string_view there(reinterpret_cast<const char*>(memory->data()), place.nonce.size());
  if (there != place.nonce) return std::nullopt;
  return OpenedValues(std::move(*memory));
}

void* OpenedValues::data() const {
  return values_in(memory_);
}

std::size_t OpenedValues::size() const {
  return memory_.size() - kBefore;
}

}  // namespace dtool::trainer
