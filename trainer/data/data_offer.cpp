// SPDX-License-Identifier: MIT
// The text:
//
//   10 1x28x28                                     outputs, and the shape of a sample
//   uint8 60000x784 47040000 NONCE /proc/7/fd/9    numbers, shape, and the place
#include "trainer/data/data_offer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/launch/greeting.h"

namespace dtool::trainer {
namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostDimensions = 8;

struct Name {
  Numbers numbers;
  std::string_view text;
  std::size_t size;
};

constexpr Name kNames[] = {
    {Numbers::uint8, "uint8", 1}, {Numbers::int64, "int64", 8}, {Numbers::float32, "float32", 4}};

const Name& name_of(Numbers numbers) {
  return kNames[static_cast<std::size_t>(numbers)];
}

std::optional<Numbers> parse_numbers(std::string_view text) {
  for (const Name& each : kNames) {
    if (each.text == text) return each.numbers;
  }
  return std::nullopt;
}

/// The words of a line, separated by single blanks; absent if their number is not `count` or one is
/// empty.
std::optional<std::vector<std::string>> split_words(std::string_view line, std::size_t count) {
  std::vector<std::string> words;
  for (;;) {
    const auto end = line.find(' ');
    words.emplace_back(line.substr(0, end));
    if (words.back().empty() || words.size() > count) return std::nullopt;
    if (end == line.npos) break;
    line.remove_prefix(end + 1);
  }
  if (words.size() != count) return std::nullopt;
  return words;
}

/// The text up to `end`, which is taken off with it; the whole text where there is none.
std::string_view cut(std::string_view& text, char end) {
  const std::size_t size = text.find(end);
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(size == text.npos ? text.size() : size + 1);
  return part;
}

/// Sizes whose product is a number, too.
std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  std::int64_t most = kMost;
  for (bool is_last = false; !is_last;) {
    is_last = text.find('x') == text.npos;
    const auto size = parse_whole(cut(text, 'x'), 1, most);
    if (!size || shape.size() == kMostDimensions) return std::nullopt;
    most /= *size;
    shape.push_back(*size);
  }
  return shape;
}

std::optional<OfferedTensor> parse_tensor(std::string_view line) {
  const auto words = split_words(line, 5);
  if (!words) return std::nullopt;
  const auto numbers = parse_numbers((*words)[0]);
  const auto shape = parse_shape((*words)[1]);
  const auto size = parse_whole((*words)[2], 1, kMost);
  if (!numbers || !shape || !size) return std::nullopt;
  auto left = *size / static_cast<std::int64_t>(size_of(*numbers));
  for (const auto each : *shape) left /= each;
  if (left == 0) return std::nullopt;
  return OfferedTensor{
      *numbers, *shape, {(*words)[4], (*words)[3], static_cast<std::size_t>(*size)}};
}

}  // namespace

std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t least,
                                        std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return std::nullopt;
  }
  return value;
}

std::size_t size_of(Numbers numbers) {
  return name_of(numbers).size;
}

std::string to_text(const DataOffer& offer) {
  std::string text = fmt::format("{} {}\n", offer.outputs, fmt::join(offer.sample_shape, "x"));
  for (const OfferedTensor& each : offer.tensors) {
    text += fmt::format("{} {} {} {} {}\n", name_of(each.numbers).text, fmt::join(each.shape, "x"),
                        each.place.size, each.place.nonce, each.place.name);
  }
  return text;
}

std::optional<DataOffer> parse_offer(std::string_view text) {
  const auto words = split_words(cut(text, '\n'), 2);
  if (!words) return std::nullopt;
  const auto outputs = parse_whole((*words)[0], 1, kMost);
  const auto shape = parse_shape((*words)[1]);
  if (!outputs || !shape) return std::nullopt;
  DataOffer offer{*shape, *outputs, {}};
  for (OfferedTensor& each : offer.tensors) {
    const auto tensor = parse_tensor(cut(text, '\n'));
    if (!tensor) return std::nullopt;
    each = *tensor;
  }
  if (!text.empty()) return std::nullopt;
  return offer;
}

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
