// A TOML table that is read strictly: unknown keys are faults, and every fault names file, line and
// column. Killfiles and configuration files are read through it. Only strict_toml.cpp includes the
// TOML library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::killfiles {

/// One table of a document, which it keeps alive. A fault is a std::invalid_argument that begins
/// with `name:line:column:`. An absent key gives no value; a value of another type is a fault.
class StrictTable {
 public:
  /// The root table of `text`; `name` stands in messages.
  static StrictTable parse(std::string_view text, const std::string& name);

  /// Throws on the first key (in the file's order) that is not in `known`; the message names the
  /// nearest known key.
  void require_known(const std::vector<std::string>& known) const;

  std::vector<std::string> keys() const;
  bool has(std::string_view key) const;
  bool holds_text(std::string_view key) const;  ///< for keys that may be a string or something else

  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;  ///< integers too
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  std::optional<StrictTable> table(std::string_view key) const;
  std::optional<std::vector<StrictTable>> tables(std::string_view key) const;  ///< `[[key]]`

  /// Throws `name:line:column: key: fault` at the place of `key`, or of the table if `key` is
  /// absent.
  [[noreturn]] void refuse(std::string_view key, std::string_view fault) const;

 private:
  struct Place;
  explicit StrictTable(std::shared_ptr<const Place> place);

  std::shared_ptr<const Place> place_;
};

}  // namespace dtool::killfiles
