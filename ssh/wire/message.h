// SPDX-License-Identifier: MIT
// Converts typed structs to bytes and back, for messages between dtool and dtool-host. A struct
// takes part by listing its fields: `void fields(auto visit) { visit(a, b); }`.
//
// Numbers are 8 bytes, lowest first. A string is its length and its bytes; a list is its length and
// its elements. An optional value is a byte that says whether it is present, and the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dtool::host {

/// Bytes that are not a message of the expected kind, or a Fault. what() is a sentence.
class BadMessage : public std::runtime_error {
 public:
  explicit BadMessage(const std::string& sentence, std::string hint = {})
      : runtime_error(sentence), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// A struct that takes part.
template <typename Struct>
concept Fielded = std::is_class_v<Struct> && requires(Struct& each) {
  each.fields([](auto&...) {});
};

/// Stands for a value of any type, to count the fields of a struct.
struct AnyValue {
  explicit AnyValue(std::size_t /*place*/) {}
  template <typename Value>
  operator Value() const {  // NOLINT(google-explicit-constructor): a field in braces converts it
    std::abort();           // never called
  }
};

/// Whether so many values fit into the braces of the struct.
template <typename Struct, std::size_t... places>
constexpr bool takes(std::index_sequence<places...> /*count*/) {
  return requires {
    Struct{AnyValue(places)...};
  };
}

template <typename Struct, std::size_t count>
inline constexpr bool has_fields = takes<Struct>(std::make_index_sequence<count>()) &&
                                   !takes<Struct>(std::make_index_sequence<count + 1>());

/// Calls `visit` with all fields of the struct.
template <Fielded Struct>
void visit_fields(Struct& value, auto visit) {
  value.fields([&visit](auto&... each) {
    static_assert(has_fields<Struct, sizeof...(each)>, "fields() leaves out a field");
    (visit(each), ...);
  });
}

/// The lowest `size` bytes of a number, lowest first.
inline std::string number_bytes(std::uint64_t number, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i, number >>= 8U) bytes += static_cast<char>(number & 0xffU);
  return bytes;
}

/// The number in at most 8 such bytes.
inline std::uint64_t read_number_bytes(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i > 0; --i)
    number = number << 8U | static_cast<unsigned char>(bytes[i - 1]);
  return number;
}

/// Writes values one after another.
class Encoder {
 public:
  void put(bool value) { bytes_ += value ? '\1' : '\0'; }

  template <typename Number>
  requires(std::is_integral_v<Number> && !std::is_same_v<Number, bool>) void put(Number value) {
    bytes_ += number_bytes(static_cast<std::uint64_t>(value), 8);
  }

  template <typename Enum>
  requires std::is_enum_v<Enum>
  void put(Enum value) { put(static_cast<std::underlying_type_t<Enum>>(value)); }

  void put(const std::string& value) {
    put(value.size());
    bytes_ += value;
  }

  template <typename Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& each : values) put(each);
  }

  template <typename Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }

  template <Fielded Struct>
  void put(const Struct& value) {
    // fields() also serves the decoder, so it is not const; nothing is written here.
    visit_fields(const_cast<Struct&>(value), [this](const auto& each) { this->put(each); });
  }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads values one after another. Throws BadMessage if the bytes end too soon.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  void get(bool& value) {
    const std::string_view byte = cut(1);
    if (byte[0] != '\0' && byte[0] != '\1') throw BadMessage("a yes or no is neither");
    value = byte[0] == '\1';
  }

  template <typename Number>
  requires(std::is_integral_v<Number> && !std::is_same_v<Number, bool>) void get(Number& value) {
    const std::uint64_t bits = read_number_bytes(cut(8));
    value = static_cast<Number>(bits);
    const auto wide = static_cast<std::uint64_t>(value);
    if (wide != bits) throw BadMessage("a number is too large");
  }

  /// It may be a value that the enumeration does not name.
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void get(Enum& value) {
    std::underlying_type_t<Enum> number{};
    get(number);
    value = static_cast<Enum>(number);
  }

  void get(std::string& value) { value = cut(get_size()); }

  /// Each element is read before the next one is made: a length alone demands no memory.
  template <typename Value>
  void get(std::vector<Value>& values) {
    values.clear();
    for (std::size_t left = get_size(); left > 0; --left) get(values.emplace_back());
  }

  template <typename Value>
  void get(std::optional<Value>& value) {
    bool is_there = false;
    get(is_there);
    value.reset();
    if (is_there) get(value.emplace(Value()));  // clang 14 takes no emplace() of a nested struct
  }

  template <Fielded Struct>
  void get(Struct& value) {
    visit_fields(value, [this](auto& each) { this->get(each); });
  }

  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view cut(std::size_t size) {
    if (size > rest_.size()) throw BadMessage("it ends too soon");
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }

  /// The number of elements or characters that follow. Each takes a byte or more.
  std::size_t get_size() {
    std::uint64_t size = 0;
    get(size);
    if (size > rest_.size()) throw BadMessage("a length is larger than the rest");
    return static_cast<std::size_t>(size);
  }

  std::string_view rest_;
};

template <typename Message>
std::string encode(const Message& message) {
  Encoder encoder;
  encoder.put(message);
  return encoder.take();
}

/// Throws BadMessage unless the bytes are exactly one such message.
template <typename Message>
Message decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Message message;
  decoder.get(message);
  if (!decoder.is_at_end()) throw BadMessage("more follows than belongs to it");
  return message;
}

}  // namespace dtool::host
