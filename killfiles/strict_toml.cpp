// SPDX-License-Identifier: MIT
#include "killfiles/strict_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <toml++/toml.h>

#include "killfiles/nearest.h"
#include "killfiles/printable.h"

namespace dtool::killfiles {

struct StrictTable::Position {
  std::shared_ptr<const toml::table> document;
  const toml::table* table;
  std::string name;    // the file's name
  std::string prefix;  // the prefix of keys in messages: "ssh."
};

namespace {

std::string place_of(const std::string& name, const toml::source_region& where) {
  return fmt::format("{}:{}:{}", name, where.begin.line, where.begin.column);
}

/// A key as a message shows it: on one line.
std::string named(std::string_view prefix, std::string_view key) {
  std::string name = fmt::format("{}{}", prefix, key);
  std::ranges::replace(name, '\n', ' ');
  return name;
}

std::string_view describe(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

/// What a message calls a value of that type, and a list of them.
template <typename Value>
struct Wanted;
template <>
struct Wanted<std::string> {
  static constexpr std::string_view one = "a string", many = "a list of strings";
};
template <>
struct Wanted<bool> {
  static constexpr std::string_view one = "true or false", many = "a list of true and false";
};
template <>
struct Wanted<std::int64_t> {
  static constexpr std::string_view one = "a whole number", many = "a list of whole numbers";
};
template <>
struct Wanted<double> {
  static constexpr std::string_view one = "a number", many = "a list of numbers";
};

/// A whole number is a number too; nothing else is taken for another type.
template <typename Value>
std::optional<Value> exactly(const toml::node& node) {
  if constexpr (std::is_same_v<Value, double>) {
    return node.is_number() ? node.value<double>() : std::nullopt;
  } else {
    return node.value_exact<Value>();
  }
}

/// `but`: what stands before the value's own type; another for an item of a list.
[[noreturn]] void refuse_type(const std::string& name, const std::string& key,
                              std::string_view wanted, const toml::node& node,
                              std::string_view but = "not") {
  throw std::invalid_argument(fmt::format("{}: {} must be {}, {} {}", place_of(name, node.source()),
                                          key, wanted, but, describe(node)));
}
constexpr std::string_view kAndHas = "and has";

/// The text behind the string or comment with which it begins; what is not closed has no rest.
std::string_view after_opaque(std::string_view text) {
  const std::string_view opens = text.substr(0, 3);
  const bool is_long = opens == R"(""")" || opens == "'''";
  const std::string_view closes = text[0] == '#' ? "\n" : opens.substr(0, is_long ? 3 : 1);
  for (std::size_t at = closes.size(); at < text.size(); ++at) {
    if (text[at] == '\\' && closes[0] == '"') {
      ++at;
    } else if (text[at] == '\n' && !is_long) {  // toml++ refuses such a string
      return text.substr(at);
    } else if (text.substr(at, closes.size()) == closes) {
      at += closes.size();
      // Two quotes more may belong to a long string.
      while (is_long && at < text.size() && text[at] == closes[0]) ++at;
      return text.substr(at);
    }
  }
  return {};
}

/// For a value without quotes, the mistake that is made most.
std::string_view hint_at_line(std::string_view text, std::size_t line) {
  for (std::size_t i = 1; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  text = text.substr(0, text.find('\n'));
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return "";
  const std::size_t at = text.find_first_not_of(" \t", equals + 1);
  if (at == text.npos) return "";
  const auto first = static_cast<unsigned char>(text[at]);
  const bool may_be_text = std::isalpha(first) != 0 || first == '/' || first == '~' || first == '.';
  return may_be_text ? "\nhint: a string stands in quotes: name = \"value\"" : "";
}

}  // namespace

void require_shallow(std::string_view text, const std::string& name) {
  constexpr std::size_t kDeepest = 64;
  // The dots of the key, or of the number, that is being read, and of those that enclose it.
  std::vector<std::size_t> dots = {0};
  std::size_t depth = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const char c = rest.front();
    if (c == '#' || c == '"' || c == '\'') {
      rest = after_opaque(rest);
      continue;
    }
    rest.remove_prefix(1);
    const bool closes = c == ']' || c == '}';
    if (c == '.') {
      ++dots.back(), ++depth;
    } else if (c == '[' || c == '{') {
      dots.push_back(0), ++depth;
    } else if ((closes && dots.size() > 1) || c == ',' || (c == '\n' && dots.size() == 1)) {
      depth -= dots.back() + (closes ? 1 : 0);
      dots.back() = 0;
      if (closes) dots.pop_back();
    }
    if (depth <= kDeepest) continue;
    const std::string_view before = text.substr(0, text.size() - rest.size());
    throw std::invalid_argument(fmt::format("{}:{}: it is nested more than {} deep", name,
                                            std::ranges::count(before, '\n') + 1, kDeepest));
  }
}

StrictTable::StrictTable(std::shared_ptr<const Position> position)
    : position_(std::move(position)) {}

StrictTable StrictTable::parse(std::string_view text, const std::string& name) {
  require_shallow(text, name);
  try {
    auto document = std::make_shared<const toml::table>(toml::parse(text, name));
    const toml::table* root = document.get();
    return StrictTable(
        std::make_shared<const Position>(Position{std::move(document), root, name, ""}));
  } catch (const toml::parse_error& fault) {
    std::string sentence(fault.description());
    if (!sentence.empty()) sentence[0] = static_cast<char>(std::tolower(sentence[0]));
    throw std::invalid_argument(fmt::format("{}: {}{}", place_of(name, fault.source()), sentence,
                                            hint_at_line(text, fault.source().begin.line)));
  }
}

std::string StrictTable::where(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  return place_of(position_->name, node != nullptr ? node->source() : position_->table->source());
}

void StrictTable::refuse(std::string_view key, std::string_view fault) const {
  throw std::invalid_argument(
      fmt::format("{}: {}: {}", where(key), named(position_->prefix, key), fault));
}

void StrictTable::require_known(const std::vector<std::string>& known) const {
  const toml::key* first = nullptr;  // the table is sorted by key; messages go by the order in the
                                     // file
  for (const auto& [key, node] : *position_->table) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    const bool is_before = first == nullptr || key.source().begin < first->source().begin;
    if (is_before) first = &key;
  }
  if (first == nullptr) return;
  throw std::invalid_argument(
      fmt::format("{}: unknown key '{}'{}", place_of(position_->name, first->source()),
                  named(position_->prefix, first->str()), hint_at(first->str(), known)));
}

std::vector<std::string> StrictTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, node] : *position_->table) keys.emplace_back(key.str());
  return keys;
}

bool StrictTable::has(std::string_view key) const {
  return position_->table->contains(key);
}

bool StrictTable::holds_text(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  return node != nullptr && node->is_string();
}

bool StrictTable::is_list(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  return node != nullptr && node->is_array();
}

template <typename Value>
std::optional<Value> StrictTable::value(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<Value> value = exactly<Value>(*node);
  if (!value)
    refuse_type(position_->name, named(position_->prefix, key), Wanted<Value>::one, *node);
  return value;
}

template <typename Value>
std::optional<std::vector<Value>> StrictTable::list(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  if (node == nullptr) return std::nullopt;
  const std::string name = named(position_->prefix, key);
  if (!node->is_array()) refuse_type(position_->name, name, Wanted<Value>::many, *node);
  std::vector<Value> values;
  for (const toml::node& each : *node->as_array()) {
    const std::optional<Value> value = exactly<Value>(each);
    if (!value) refuse_type(position_->name, name, Wanted<Value>::many, each, kAndHas);
    values.push_back(*value);
  }
  return values;
}

template std::optional<std::string> StrictTable::value<std::string>(std::string_view) const;
template std::optional<bool> StrictTable::value<bool>(std::string_view) const;
template std::optional<std::int64_t> StrictTable::value<std::int64_t>(std::string_view) const;
template std::optional<double> StrictTable::value<double>(std::string_view) const;
template std::optional<std::vector<std::string>> StrictTable::list<std::string>(
    std::string_view) const;
template std::optional<std::vector<std::int64_t>> StrictTable::list<std::int64_t>(
    std::string_view) const;
template std::optional<std::vector<double>> StrictTable::list<double>(std::string_view) const;

std::optional<StrictTable> StrictTable::table(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  if (node == nullptr) return std::nullopt;
  const std::string name = named(position_->prefix, key);
  if (!node->is_table()) refuse_type(position_->name, name, "a table", *node);
  return StrictTable(std::make_shared<const Position>(
      Position{position_->document, node->as_table(), position_->name, name + "."}));
}

std::optional<std::vector<StrictTable>> StrictTable::tables(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  if (node == nullptr) return std::nullopt;
  const std::string name = named(position_->prefix, key);
  const std::string wanted = fmt::format("a list of tables, [[{}]]", name);
  if (!node->is_array()) refuse_type(position_->name, name, wanted, *node);
  std::vector<StrictTable> tables;
  for (const toml::node& each : *node->as_array()) {
    if (!each.is_table()) refuse_type(position_->name, name, wanted, each, kAndHas);
    tables.push_back(StrictTable(std::make_shared<const Position>(
        Position{position_->document, each.as_table(), position_->name,
                 fmt::format("{}[{}].", name, tables.size())})));
  }
  return tables;
}

namespace {

bool has_json(const toml::node& node) {
  const auto each_has = [](const auto& inner) {
    bool all = true;
    inner.for_each([&](const auto& below) { all = all && has_json(below); });
    return all;
  };
  if (const toml::table* table = node.as_table()) return each_has(*table);
  if (const toml::array* array = node.as_array()) return each_has(*array);
  if (const auto* number = node.as_floating_point()) return std::isfinite(number->get());
  return node.is_string() || node.is_integer() || node.is_boolean();
}

}  // namespace

std::optional<std::string> StrictTable::json(std::string_view key) const {
  const toml::node* node = position_->table->get(key);
  if (node == nullptr) return std::nullopt;
  if (!has_json(*node)) {
    refuse(key, "has a date, or a number that is not finite, which JSON has not");
  }
  std::ostringstream text;
  text << toml::json_formatter{*node, toml::format_flags::none};
  std::string line = text.str();
  std::ranges::replace(line, '\n', ' ');  // a string's own are escaped
  return line;
}

// Escapes bytes and reads them back. Both directions are exact: bytes that spell a code point of
// the private range are escaped, too.

namespace {

unsigned at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
}

bool is_private_corner(std::string_view text) {
  return at(text, 0) == 0xf4 && at(text, 1) == 0x8f &&
         (at(text, 2) == 0xba || at(text, 2) == 0xbb) && text.size() >= 4;
}

/// The length of the character at the beginning of `text`; 0: its first byte is to be escaped.
std::size_t plain_length(std::string_view text) {
  const Character character = character_at(text, 0);
  return character.code && !is_private_corner(text) ? character.size : 0;
}

}  // namespace

std::string to_toml(std::string_view bytes) {
  std::string text = "\"";
  while (!bytes.empty()) {
    const unsigned first = at(bytes, 0);
    const std::size_t length = plain_length(bytes);
    if (length == 0) {
      text += fmt::format("\\U{:08X}", 0x10fe00 + first);
    } else if (first < 0x20 || first == 0x7f) {
      text += fmt::format("\\u{:04X}", first);
    } else {
      if (first == '"' || first == '\\') text += '\\';
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text + '"';
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const unsigned first = at(bytes, 0);
    const std::size_t length = plain_length(bytes);
    if (length == 0) {
      // U+10FE80 to U+10FEFF, byte by byte
      text += "\xf4\x8f";
      text += static_cast<char>(0xba + ((first - 0x80) >> 6));
      text += static_cast<char>(0x80 + (first & 0x3fu));
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string from_toml(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const bool is_byte = is_private_corner(text);
    bytes += is_byte ? static_cast<char>(0x80 + ((at(text, 2) - 0xba) << 6) + (at(text, 3) - 0x80))
                     : text[0];
    text.remove_prefix(is_byte ? 4 : 1);
  }
  return bytes;
}

}  // namespace dtool::killfiles
