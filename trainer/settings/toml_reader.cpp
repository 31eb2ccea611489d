// SPDX-License-Identifier: MIT
#include "trainer/settings/toml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "killfiles/nearest.h"
#include "killfiles/whole_file.h"
#include "trainer/experiments/shipped.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

using killfiles::StrictTable;

struct TomlReader::Found {
  StrictTable table;
  std::string name;
};

namespace {

/// What StrictTable refuses, as this program's own error.
template <class Read>
auto with_usage_error(Read read) {
  try {
    return read();
  } catch (const std::invalid_argument& fault) {
    const std::string_view text = fault.what();
    constexpr std::string_view kHint = "\nhint: ";
    const std::size_t at = text.find(kHint);
    throw UsageError(std::string(text.substr(0, at)),
                     at == text.npos ? "" : std::string(text.substr(at + kHint.size())));
  }
}

/// By a file's path, or by the name of an experiment that comes with dtool.
StrictTable read_table(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    std::string names;
    for (const auto& [name, text] : experiments::kAll) {
      if (file == name) return StrictTable::parse(text, file.string());
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    }
    throw UsageError(fmt::format("no experiment file at {}", file.string()),
                     "these come with dtool: " + names);
  }
  try {
    const std::string text = killfiles::read_whole(file);
    return with_usage_error([&] { return StrictTable::parse(text, file.string()); });
  } catch (const std::system_error& fault) {
    throw UsageError(fault.what());
  }
}

/// "stage[2]" is "stage" and 2; a name without an index has none.
std::pair<std::string, std::optional<std::size_t>> split_index(std::string_view segment) {
  const std::size_t bracket = segment.find('[');
  if (bracket == segment.npos) return {std::string(segment), std::nullopt};
  std::size_t index = 0;
  std::from_chars(segment.data() + bracket + 1, segment.data() + segment.size(), index);
  return {std::string(segment.substr(0, bracket)), index};
}

/// The names that are known at each level: of "a.b" and "a.c[0].d" the table {a: {b: {}, c: {d:
/// {}}}}.
struct KnownKeys {
  std::map<std::string, KnownKeys> below;

  void add(std::string_view key) {
    const std::size_t dot = key.find('.');
    KnownKeys& child = below[split_index(key.substr(0, dot)).first];
    if (dot != key.npos) child.add(key.substr(dot + 1));
  }
};

void require_known(const StrictTable& table, const KnownKeys& known) {
  std::vector<std::string> names;
  for (const auto& [name, below] : known.below) names.push_back(name);
  table.require_known(names);
  for (const auto& [name, inner] : known.below) {
    if (inner.below.empty() || !table.has(name)) continue;
    if (table.is_list(name)) {
      const auto tables = table.tables(name);
      for (const StrictTable& each : *tables) require_known(each, inner);
    } else {
      const auto below = table.table(name);
      require_known(*below, inner);
    }
  }
}

std::string describe(const std::string& value) {
  return value;
}

std::string describe(const std::vector<std::string>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string describe(const auto& value) {
  return fmt::format("{}", value);
}

}  // namespace

TomlReader::TomlReader(const std::filesystem::path& file)
    : file_(file.string()), root_(read_table(file)) {}

std::optional<TomlReader::Found> TomlReader::find(const std::string& key) const {
  return with_usage_error([&]() -> std::optional<Found> {
    Found found{root_, {}};
    std::string_view rest = key;
    for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      const auto [name, index] = split_index(rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
      if (!found.table.has(name)) return std::nullopt;
      if (!index) {
        found.table = *found.table.table(name);
        continue;
      }
      const auto tables = found.table.tables(name);
      if (*index >= tables->size()) return std::nullopt;
      found.table = (*tables)[*index];
    }
    found.name = split_index(rest).first;
    if (!found.table.has(found.name)) return std::nullopt;
    return found;
  });
}

template <class Value>
std::optional<Value> TomlReader::get(const std::string& key, Getter<Value> getter) {
  known_.push_back(key);
  const auto found = find(key);
  if (!found) return std::nullopt;
  return with_usage_error([&] { return (found->table.*getter)(found->name); });
}

template <class Number>
void TomlReader::check_limits(const std::string& key, Number value, Limits<Number> limits) const {
  if (value >= limits.least && value <= limits.most) return;  // false for nan too
  throw UsageError(fmt::format("{}: {} must be from {} to {}, not {}", where(key), key,
                               limits.least, limits.most, value));
}

template <class Value>
Value TomlReader::remember(const std::string& key, const std::optional<Value>& given,
                           Value standard) {
  Value value = given ? *given : std::move(standard);
  settings_.push_back({key, describe(value), given ? Origin::given : Origin::by_default});
  return value;
}

template <class Value, class Number>
std::optional<Value> TomlReader::get_within(const std::string& key, Getter<Value> getter,
                                            Limits<Number> limits) {
  const auto given = get(key, getter);
  if constexpr (std::is_same_v<Value, Number>) {
    if (given) check_limits(key, *given, limits);
  } else if (given) {
    for (const Number each : *given) check_limits(key, each, limits);
  }
  return given;
}

std::optional<std::int64_t> TomlReader::integer_if_given(const std::string& key,
                                                         Limits<std::int64_t> limits) {
  const auto given = get_within(key, &StrictTable::integer, limits);
  if (given) remember(key, given, std::int64_t{0});
  return given;
}

std::int64_t TomlReader::integer(const std::string& key, std::int64_t standard,
                                 Limits<std::int64_t> limits) {
  return remember(key, get_within(key, &StrictTable::integer, limits), standard);
}

std::optional<double> TomlReader::number_if_given(const std::string& key, Limits<double> limits) {
  const auto given = get_within(key, &StrictTable::number, limits);
  if (given) remember(key, given, 0.0);
  return given;
}

double TomlReader::number(const std::string& key, double standard, Limits<double> limits) {
  return remember(key, get_within(key, &StrictTable::number, limits), standard);
}

std::optional<std::string> TomlReader::json_if_given(const std::string& key) {
  auto value = get(key, &StrictTable::json);
  if (value) remember(key, value, std::string());
  return value;
}

std::string TomlReader::text(const std::string& key, const std::string& standard) {
  return remember(key, get(key, &StrictTable::text), standard);
}

bool TomlReader::boolean(const std::string& key, bool standard) {
  return remember(key, get(key, &StrictTable::boolean), standard);
}

std::vector<std::int64_t> TomlReader::integers(const std::string& key,
                                               std::vector<std::int64_t> standard,
                                               Limits<std::int64_t> limits) {
  return remember(key, get_within(key, &StrictTable::integers, limits), std::move(standard));
}

std::vector<double> TomlReader::numbers(const std::string& key, std::vector<double> standard,
                                        Limits<double> limits) {
  return remember(key, get_within(key, &StrictTable::numbers, limits), std::move(standard));
}

std::vector<std::string> TomlReader::texts(const std::string& key,
                                           std::vector<std::string> standard) {
  return remember(key, get(key, &StrictTable::texts), std::move(standard));
}

std::size_t TomlReader::count_tables(const std::string& key) {
  const auto tables = get(key, &StrictTable::tables);
  return tables ? tables->size() : 0;
}

bool TomlReader::has(const std::string& key) const {
  return find(key).has_value();
}

std::string TomlReader::where(const std::string& key) const {
  const auto found = find(key);
  return found ? found->table.where(found->name) : file_;
}

std::string TomlReader::word(const std::string& key, const std::vector<std::string>& choices,
                             std::optional<std::string> standard) {
  const auto given = get(key, &StrictTable::text);
  if (!given && !standard) {
    throw UsageError(fmt::format("{}: {} is missing", file_, key),
                     fmt::format("{} is one of {}", key, fmt::join(choices, ", ")));
  }
  if (given && std::ranges::find(choices, *given) == choices.end()) {
    const auto near = killfiles::nearest(*given, choices);
    throw UsageError(fmt::format("{}: {} is one of {}, not '{}'", where(key), key,
                                 fmt::join(choices, ", "), *given),
                     near ? fmt::format("did you mean '{}'?", *near) : "");
  }
  return remember(key, given, standard.value_or(""));
}

void TomlReader::refuse_if_given(const std::string& key, const std::string& why) const {
  if (has(key)) throw UsageError(fmt::format("{}: {} {}", where(key), key, why));
}

void TomlReader::refuse_unknown_keys() const {
  KnownKeys known;
  for (const auto& key : known_) known.add(key);
  with_usage_error([&] { require_known(root_, known); });
}

// Arranges settings in columns; rank 0's worker calls it.

std::string settings_table(const std::vector<Setting>& settings, Shown shown) {
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  std::size_t left_out = 0;
  const auto is_left_out = [shown](const Setting& each) {
    return shown == Shown::given && each.origin == Origin::by_default;
  };
  for (const Setting& each : settings) {
    if (is_left_out(each)) {
      ++left_out;
      continue;
    }
    key_width = std::max(key_width, each.key.size());
    if (each.origin == Origin::by_default) value_width = std::max(value_width, each.value.size());
  }
  std::string table;
  for (const Setting& each : settings) {
    if (is_left_out(each)) continue;
    table += each.origin == Origin::given
                 ? fmt::format("  {:<{}}  {}\n", each.key, key_width, each.value)
                 : fmt::format("  {:<{}}  {:<{}}  (default)\n", each.key, key_width, each.value,
                               value_width);
  }
  if (left_out > 0)
    table += fmt::format("  and {} default{} (dtool-trainer --verbose shows all)\n", left_out,
                         left_out == 1 ? "" : "s");
  return table;
}

}  // namespace dtool::trainer
