// SPDX-License-Identifier: MIT
// Reads TOML tables strictly: every fault names file, line and column, and unknown keys are faults.
// Killfiles, configuration files and the trainer's experiments are read through it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::killfiles {

/// Throws std::invalid_argument with `name:line:` if keys or values of the TOML text are nested
/// more than 64 deep. toml++ bounds values only, and frees what it has read recursively: 50,000
/// dotted parts of a key overflow the stack. Call it before toml::parse.
void require_shallow(std::string_view text, const std::string& name);

/// One table of a document; it keeps the document alive. All faults are std::invalid_argument
/// beginning `name:line:column:`, with a second line `hint: ...` where the mend is known. A key
/// that is absent gives no value, a value of another type is a fault.
class StrictTable {
 public:
  /// The root table of `text`; `name` stands in messages.
  static StrictTable parse(std::string_view text, const std::string& name);

  /// Throws on the first key (in the file's order) that is not in `known`; the message names the
  /// nearest known key.
  void require_known(const std::vector<std::string>& known) const;

  std::vector<std::string> keys() const;
  bool has(std::string_view key) const;
  /// For keys that may hold values of more than one type.
  bool holds_text(std::string_view key) const;
  bool is_list(std::string_view key) const;

  std::optional<std::string> text(std::string_view key) const { return value<std::string>(key); }
  std::optional<bool> boolean(std::string_view key) const { return value<bool>(key); }
  std::optional<std::int64_t> integer(std::string_view key) const {
    return value<std::int64_t>(key);
  }
  /// Integers too.
  std::optional<double> number(std::string_view key) const { return value<double>(key); }
  std::optional<std::vector<std::string>> texts(std::string_view key) const {
    return list<std::string>(key);
  }
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const {
    return list<std::int64_t>(key);
  }
  std::optional<std::vector<double>> numbers(std::string_view key) const {
    return list<double>(key);
  }
  std::optional<StrictTable> table(std::string_view key) const;
  std::optional<std::vector<StrictTable>> tables(std::string_view key) const;  ///< `[[key]]`

  /// Any value but a date, an infinite number or one that is none, as JSON on one line.
  std::optional<std::string> json(std::string_view key) const;

  /// Where `key` stands, or the table where that has no such key: `name:line:column`.
  std::string where(std::string_view key) const;

  /// Throws `name:line:column: key: fault`.
  [[noreturn]] void refuse(std::string_view key, std::string_view fault) const;

 private:
  struct Position;
  explicit StrictTable(std::shared_ptr<const Position> position);

  template <typename Value>
  std::optional<Value> value(std::string_view key) const;
  template <typename Value>
  std::optional<std::vector<Value>> list(std::string_view key) const;

  std::shared_ptr<const Position> position_;
};

// Arbitrary bytes in TOML strings. TOML holds only UTF-8, but a path or an argument may hold any
// bytes. Bytes that are not UTF-8 are written as code points of a private range of Unicode,
// U+10FE80 (byte 0x80) to U+10FEFF (byte 0xff).

/// `bytes` as a quoted TOML string on one line.
std::string to_toml(std::string_view bytes);

/// The same without quotes and escapes, for other formats that hold only UTF-8.
std::string to_utf8(std::string_view bytes);

/// The bytes that to_toml or to_utf8 wrote, from the string that a TOML reader gives.
std::string from_toml(std::string_view text);

}  // namespace dtool::killfiles
