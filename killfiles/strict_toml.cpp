// The only file of dtool itself that includes toml++.
#include "killfiles/strict_toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include "killfiles/nearest.h"

namespace dtool::killfiles {

struct StrictTable::Place {
  std::shared_ptr<const toml::table> document;
  const toml::table* table;
  std::string name;    // of the file
  std::string prefix;  // of keys in messages: "ssh."
};

namespace {

[[noreturn]] void refuse_at(const std::string& name, const toml::source_region& where,
                            std::string_view fault) {
  throw std::invalid_argument(
      fmt::format("{}:{}:{}: {}", name, where.begin.line, where.begin.column, fault));
}

/// A key as a message shows it: on one line, with other characters escaped.
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
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

/// The value at `key`, if the table has it; a value of another type is refused.
template <typename Value>
std::optional<Value> exactly(const StrictTable& table, const toml::node* node, std::string_view key,
                             std::string_view wanted) {
  if (node == nullptr) return std::nullopt;
  const std::optional<Value> value = node->value_exact<Value>();
  if (!value) table.refuse(key, fmt::format("is {}, not {}", describe(*node), wanted));
  return value;
}

}  // namespace

StrictTable::StrictTable(std::shared_ptr<const Place> place) : place_(std::move(place)) {}

StrictTable StrictTable::parse(std::string_view text, const std::string& name) {
  try {
    auto document = std::make_shared<const toml::table>(toml::parse(text, name));
    const toml::table* root = document.get();
    return StrictTable(std::make_shared<const Place>(Place{std::move(document), root, name, ""}));
  } catch (const toml::parse_error& fault) {
    std::string sentence(fault.description());
    if (!sentence.empty()) sentence[0] = static_cast<char>(std::tolower(sentence[0]));
    refuse_at(name, fault.source(), sentence);
  }
}

void StrictTable::refuse(std::string_view key, std::string_view fault) const {
  const toml::node* node = place_->table->get(key);
  refuse_at(place_->name, node != nullptr ? node->source() : place_->table->source(),
            fmt::format("{}: {}", named(place_->prefix, key), fault));
}

void StrictTable::require_known(const std::vector<std::string>& known) const {
  const toml::key* first = nullptr;  // the table is sorted by key; messages go by the order in the
                                     // file
  for (const auto& [key, node] : *place_->table) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    const bool is_before = first == nullptr || key.source().begin < first->source().begin;
    if (is_before) first = &key;
  }
  if (first == nullptr) return;
  refuse_at(place_->name, first->source(),
            fmt::format("unknown key '{}'{}", named(place_->prefix, first->str()),
                        hint_at(first->str(), known)));
}

std::vector<std::string> StrictTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, node] : *place_->table) keys.emplace_back(key.str());
  return keys;
}

bool StrictTable::has(std::string_view key) const {
  return place_->table->contains(key);
}

bool StrictTable::holds_text(std::string_view key) const {
  const toml::node* node = place_->table->get(key);
  return node != nullptr && node->is_string();
}

std::optional<std::string> StrictTable::text(std::string_view key) const {
  return exactly<std::string>(*this, place_->table->get(key), key, "a string");
}

std::optional<bool> StrictTable::boolean(std::string_view key) const {
  return exactly<bool>(*this, place_->table->get(key), key, "true or false");
}

std::optional<std::int64_t> StrictTable::integer(std::string_view key) const {
  return exactly<std::int64_t>(*this, place_->table->get(key), key, "an integer");
}

std::optional<double> StrictTable::number(std::string_view key) const {
  const toml::node* node = place_->table->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_number()) refuse(key, fmt::format("is {}, not a number", describe(*node)));
  return node->value<double>();
}

std::optional<std::vector<std::string>> StrictTable::texts(std::string_view key) const {
  const toml::node* node = place_->table->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_array()) refuse(key, fmt::format("is {}, not an array", describe(*node)));
  std::vector<std::string> texts;
  for (const toml::node& element : *node->as_array()) {
    if (!element.is_string()) {
      refuse_at(place_->name, element.source(),
                fmt::format("{}: holds {}, not only strings", named(place_->prefix, key),
                            describe(element)));
    }
    texts.push_back(element.as_string()->get());
  }
  return texts;
}

std::optional<StrictTable> StrictTable::table(std::string_view key) const {
  const toml::node* node = place_->table->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_table()) refuse(key, fmt::format("is {}, not a table", describe(*node)));
  return StrictTable(
      std::make_shared<const Place>(Place{place_->document, node->as_table(), place_->name,
                                          fmt::format("{}{}.", place_->prefix, key)}));
}

std::optional<std::vector<StrictTable>> StrictTable::tables(std::string_view key) const {
  const toml::node* node = place_->table->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_array()) refuse(key, fmt::format("is {}, not tables", describe(*node)));
  std::vector<StrictTable> tables;
  for (const toml::node& element : *node->as_array()) {
    if (!element.is_table()) {
      refuse_at(place_->name, element.source(),
                fmt::format("{}: holds {}, not only tables", named(place_->prefix, key),
                            describe(element)));
    }
    tables.push_back(StrictTable(
        std::make_shared<const Place>(Place{place_->document, element.as_table(), place_->name,
                                            fmt::format("{}{}.", place_->prefix, key)})));
  }
  return tables;
}

}  // namespace dtool::killfiles
