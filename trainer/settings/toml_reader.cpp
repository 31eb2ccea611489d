// The trainer's only file that includes toml++.
#include "trainer/settings/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <functional>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

struct TomlReader::Document {
  toml::table table;
};

struct TomlReader::Node {
  toml::node* node;
};

namespace {

std::string place(const std::string& file, const toml::node& node) {
  return fmt::format("{}:{}", file, node.source().begin.line);
}

const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "text";
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

template <class Number>
void check_limits(const std::string& where, const std::string& key, Number value,
                  Limits<Number> limits) {
  if (value >= limits.least && value <= limits.most) return;  // false for nan too
  throw UsageError(fmt::format("{}: {} must be from {} to {}, not {}", where, key, limits.least,
                               limits.most, value));
}

UsageError wrong_type(const std::string& where, const std::string& key, const std::string& wanted,
                      const toml::node& node) {
  return UsageError(fmt::format("{}: {} must be {}, not {}", where, key, wanted, type_name(node)));
}

std::int64_t whole_number(const std::string& file, const std::string& key, const toml::node& node,
                          Limits<std::int64_t> limits) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value) throw wrong_type(place(file, node), key, "a whole number", node);
  check_limits(place(file, node), key, *value, limits);
  return *value;
}

double any_number(const std::string& file, const std::string& key, const toml::node& node,
                  Limits<double> limits) {
  if (!node.is_number()) throw wrong_type(place(file, node), key, "a number", node);
  const double value = *node.value<double>();
  check_limits(place(file, node), key, value, limits);
  return value;
}

std::string any_text(const std::string& file, const std::string& key, const toml::node& node) {
  if (!node.is_string()) throw wrong_type(place(file, node), key, "text", node);
  return *node.value<std::string>();
}

/// `read` makes a value of one element.
template <class Value>
std::vector<Value> list_of(const std::string& file, const std::string& key, const char* wanted,
                           const toml::node& node,
                           const std::function<Value(const toml::node&)>& read) {
  if (!node.is_array()) throw wrong_type(place(file, node), key, wanted, node);
  std::vector<Value> values;
  for (const toml::node& each : *node.as_array()) values.push_back(read(each));
  return values;
}

std::size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t change = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row[to.size()];
}

void refuse_unknown(const toml::table& table, const std::string& prefix, const std::string& file,
                    const std::vector<std::string>& known) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
    if (is_known && !node.is_array_of_tables()) continue;
    if (is_known) {
      const toml::array& tables = *node.as_array();
      for (std::size_t i = 0; i < tables.size(); ++i) {
        refuse_unknown(*tables[i].as_table(), fmt::format("{}[{}].", key, i), file, known);
      }
      continue;
    }
    const bool is_table_of_known = std::any_of(
        known.begin(), known.end(), [&](const auto& each) { return each.starts_with(key + "."); });
    if (is_table_of_known && node.is_table()) {
      refuse_unknown(*node.as_table(), key + ".", file, known);
      continue;
    }
    const auto where = fmt::format("{}:{}", file, name.source().begin.line);
    if (is_table_of_known) {
      throw UsageError(fmt::format("{}: {} must be a table, not {}", where, key, type_name(node)));
    }
    const auto near = nearest(key, known);
    throw UsageError(
        fmt::format("{}: unknown {} {}", where, node.is_table() ? "table" : "key", key),
        near.empty() ? "" : fmt::format("did you mean {}?", near));
  }
}

}  // namespace

TomlReader::TomlReader(const std::filesystem::path& file)
    : document_(std::make_unique<Document>()), file_(file.string()) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw UsageError(fmt::format("no experiment file at {}", file_));
  }
  try {
    document_->table = toml::parse_file(file_);
  } catch (const toml::parse_error& problem) {
    throw UsageError(
        fmt::format("{}:{}: {}", file_, problem.source().begin.line, problem.description()));
  }
}

TomlReader::~TomlReader() = default;

std::optional<TomlReader::Node> TomlReader::find(const std::string& key) {
  known_.push_back(key);
  toml::node* node = document_->table.at_path(key).node();
  if (node == nullptr) return std::nullopt;
  return Node{node};
}

void TomlReader::remember(const std::string& key, std::string value, Origin origin) {
  settings_.push_back({key, std::move(value), origin});
}

std::int64_t TomlReader::integer(const std::string& key, std::int64_t standard,
                                 Limits<std::int64_t> limits) {
  const auto found = find(key);
  const std::int64_t value = found ? whole_number(file_, key, *found->node, limits) : standard;
  remember(key, fmt::format("{}", value), found ? Origin::given : Origin::by_default);
  return value;
}

std::optional<std::int64_t> TomlReader::integer_if_given(const std::string& key,
                                                         Limits<std::int64_t> limits) {
  const auto found = find(key);
  if (!found) return std::nullopt;
  const std::int64_t value = whole_number(file_, key, *found->node, limits);
  remember(key, fmt::format("{}", value), Origin::given);
  return value;
}

double TomlReader::number(const std::string& key, double standard, Limits<double> limits) {
  const auto found = find(key);
  const double value = found ? any_number(file_, key, *found->node, limits) : standard;
  remember(key, fmt::format("{}", value), found ? Origin::given : Origin::by_default);
  return value;
}

std::optional<double> TomlReader::number_if_given(const std::string& key, Limits<double> limits) {
  const auto found = find(key);
  if (!found) return std::nullopt;
  const double value = any_number(file_, key, *found->node, limits);
  remember(key, fmt::format("{}", value), Origin::given);
  return value;
}

std::string TomlReader::text(const std::string& key, const std::string& standard) {
  const auto found = find(key);
  const std::string value = found ? any_text(file_, key, *found->node) : standard;
  remember(key, value, found ? Origin::given : Origin::by_default);
  return value;
}

bool TomlReader::boolean(const std::string& key, bool standard) {
  const auto found = find(key);
  bool value = standard;
  if (found) {
    const toml::node& node = *found->node;
    if (!node.is_boolean()) throw wrong_type(place(file_, node), key, "true or false", node);
    value = *node.value<bool>();
  }
  remember(key, fmt::format("{}", value), found ? Origin::given : Origin::by_default);
  return value;
}

std::vector<std::int64_t> TomlReader::integers(const std::string& key,
                                               std::vector<std::int64_t> standard,
                                               Limits<std::int64_t> limits) {
  const auto found = find(key);
  if (found) {
    standard = list_of<std::int64_t>(
        file_, key, "a list of whole numbers", *found->node,
        [&](const toml::node& each) { return whole_number(file_, key, each, limits); });
  }
  remember(key, fmt::format("{}", standard), found ? Origin::given : Origin::by_default);
  return standard;
}

std::vector<double> TomlReader::numbers(const std::string& key, std::vector<double> standard,
                                        Limits<double> limits) {
  const auto found = find(key);
  if (found) {
    standard = list_of<double>(
        file_, key, "a list of numbers", *found->node,
        [&](const toml::node& each) { return any_number(file_, key, each, limits); });
  }
  remember(key, fmt::format("{}", standard), found ? Origin::given : Origin::by_default);
  return standard;
}

std::vector<std::string> TomlReader::texts(const std::string& key,
                                           std::vector<std::string> standard) {
  const auto found = find(key);
  if (found) {
    standard =
        list_of<std::string>(file_, key, "a list of texts", *found->node,
                             [&](const toml::node& each) { return any_text(file_, key, each); });
  }
  remember(key, fmt::format("[{}]", fmt::join(standard, ", ")),
           found ? Origin::given : Origin::by_default);
  return standard;
}

std::size_t TomlReader::count_tables(const std::string& key) {
  const auto found = find(key);
  if (!found) return 0;
  const toml::array* tables = found->node->as_array();
  if (tables == nullptr || !tables->is_homogeneous(toml::node_type::table)) {
    throw wrong_type(place(file_, *found->node), key, fmt::format("a list of tables, [[{}]]", key),
                     *found->node);
  }
  return tables->size();
}

bool TomlReader::has(const std::string& key) const {
  return document_->table.at_path(key).node() != nullptr;
}

std::string TomlReader::where(const std::string& key) const {
  const toml::node* node = document_->table.at_path(key).node();
  return node == nullptr ? file_ : place(file_, *node);
}

std::string TomlReader::word(const std::string& key, const std::vector<std::string>& choices,
                             std::optional<std::string> standard) {
  const auto found = find(key);
  if (!found) {
    if (!standard) {
      throw UsageError(fmt::format("{}: {} is missing", file_, key),
                       fmt::format("{} is one of {}", key, fmt::join(choices, ", ")));
    }
    remember(key, *standard, Origin::by_default);
    return *standard;
  }
  const toml::node& node = *found->node;
  const auto value = node.value_exact<std::string>();
  if (!value) throw wrong_type(place(file_, node), key, "text", node);
  if (std::find(choices.begin(), choices.end(), *value) == choices.end()) {
    const auto near = nearest(*value, choices);
    throw UsageError(fmt::format("{}: {} is one of {}, not '{}'", place(file_, node), key,
                                 fmt::join(choices, ", "), *value),
                     near.empty() ? "" : fmt::format("did you mean {}?", near));
  }
  remember(key, *value, Origin::given);
  return *value;
}

void TomlReader::refuse_if_given(const std::string& key, const std::string& why) const {
  if (has(key)) throw UsageError(fmt::format("{}: {} {}", where(key), key, why));
}

void TomlReader::refuse_unknown_keys() const {
  refuse_unknown(document_->table, "", file_, known_);
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& each : known) {
    if (const auto edits = edit_distance(word, each); edits < fewest) {
      fewest = edits;
      best = each;
    }
  }
  return best;
}

}  // namespace dtool::trainer
