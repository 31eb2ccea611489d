// SPDX-License-Identifier: MIT
// The offer is JSON: {"outputs": 10, "shape": [1, 28, 28], "tensors": [{"name": "/proc/7/fd/9",
// "nonce": "..", "numbers": "uint8", "shape": [60000, 784], "size": 47040000}, ..]}.
#include "trainer/data/data_offer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ssh/wire/words.h"
#include "trainer/launch/greeting.h"

namespace dtool::trainer {
namespace {

using nlohmann::json;

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostDimensions = 8;

struct Name {
  const char* text;
  std::size_t size;
};

/// In the order of Numbers.
constexpr Name kNames[] = {{"uint8", 1}, {"int64", 8}, {"float32", 4}};

const Name& name_of(Numbers numbers) {
  return kNames[static_cast<std::size_t>(numbers)];
}

/// A whole number from 1 to `most`. It and the functions below throw std::invalid_argument, or what
/// the library throws, for anything else.
std::int64_t read_whole(const json& value, std::int64_t most) {
  const auto number = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  if (number == 0 || number > static_cast<std::uint64_t>(most)) {
    throw std::invalid_argument("no such number");
  }
  return static_cast<std::int64_t>(number);
}

/// Sizes whose product is a number, too.
std::vector<std::int64_t> read_shape(const json& value) {
  if (!value.is_array() || value.empty() || value.size() > kMostDimensions) {
    throw std::invalid_argument("no shape");
  }
  std::vector<std::int64_t> shape;
  std::int64_t most = kMost;
  for (const json& each : value) most /= shape.emplace_back(read_whole(each, most));
  return shape;
}

OfferedTensor read_tensor(const json& value) {
  OfferedTensor tensor;
  const auto is_named = [&](const Name& each) { return value.at("numbers") == each.text; };
  const auto* const numbers = std::ranges::find_if(kNames, is_named);
  if (numbers == std::end(kNames)) throw std::invalid_argument("no type of numbers");
  tensor.numbers = static_cast<Numbers>(numbers - kNames);
  tensor.shape = read_shape(value.at("shape"));
  tensor.place = {value.at("name"), value.at("nonce"),
                  static_cast<std::size_t>(read_whole(value.at("size"), kMost))};
  auto left = tensor.place.size / numbers->size;
  for (const auto each : tensor.shape) left /= static_cast<std::size_t>(each);
  if (left == 0) throw std::invalid_argument("a place that is too small");
  return tensor;
}

}  // namespace

std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t least,
                                        std::int64_t most) {
  const auto value = host::parse_number<std::int64_t>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

std::size_t size_of(Numbers numbers) {
  return name_of(numbers).size;
}

std::string to_text(const DataOffer& offer) {
  json text = {{"outputs", offer.outputs}, {"shape", offer.sample_shape}};
  for (const auto& [numbers, shape, place] : offer.tensors) {
    text["tensors"].push_back({{"numbers", name_of(numbers).text},
                               {"shape", shape},
                               {"size", place.size},
                               {"nonce", place.nonce},
                               {"name", place.name}});
  }
  return text.dump();
}

std::optional<DataOffer> parse_offer(std::string_view text) {
  try {
    const json value = json::parse(text);
    DataOffer offer{read_shape(value.at("shape")), read_whole(value.at("outputs"), kMost), {}};
    const json& tensors = value.at("tensors");
    if (tensors.size() != offer.tensors.size()) return std::nullopt;
    for (std::size_t i = 0; i < tensors.size(); ++i) offer.tensors[i] = read_tensor(tensors.at(i));
    return offer;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
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
