// SPDX-License-Identifier: MIT
#include "trainer/environments/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "killfiles/printable.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using nlohmann::json;

constexpr std::size_t kMostParts = 64;
constexpr std::size_t kMostSides = 8;
constexpr std::size_t kLongestName = 64;
constexpr std::size_t kMostActions = 4096;
constexpr std::int64_t kMostChoices = 1 << 16;
/// Of an observation: it may be a picture of 4096 x 4096 in four colours.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 26;

template <class... Values>
void require(bool holds, std::string_view what, const Values&... values) {
  if (!holds) throw std::runtime_error(fmt::vformat(what, fmt::make_format_args(values...)));
}

/// The object of a line, or null. Values deeper than any answer's are left out.
json parse(std::string_view line) {
  const auto is_shallow = [](int depth, json::parse_event_t, json&) { return depth < 16; };
  json value = json::parse(line, is_shallow, false);
  return value.is_object() ? value : json();
}

std::string plain(const json& text) {
  constexpr std::size_t kLongest = 2000;
  if (!text.is_string()) return "";
  auto words = text.get<std::string>();
  std::ranges::replace(words, '\n', ' ');
  return killfiles::printable_start(words, kLongest);
}

std::int64_t whole_number(const json& value, std::int64_t most, const std::string& what) {
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                    value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  require(fits, "{} is not a whole number from 1 to {}", what, most);
  return value.get<std::int64_t>();
}

const json& list_of(const json& object, const char* key, std::size_t most) {
  const json& list = object.at(key);
  require(list.is_array() && list.size() <= most, "{} is not a list of at most {}", key, most);
  return list;
}

Observed read_part(const json& part) {
  Observed observed;
  observed.name = part.at("name").get<std::string>();
  const std::string& name = observed.name;
  const auto is_visible = [](unsigned char each) { return each > 0x20 && each < 0x7f; };
  require(!name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_visible),
          "the name of an observation is not 1 to {} visible characters of ASCII", kLongestName);
  const json& kind = part.at("kind");
  require(kind == "codes" || kind == "pixels" || kind == "numbers",
          "the kind of observation {} is not codes, pixels or numbers", name);
  observed.kind = kind == "codes"    ? ObservedKind::codes
                  : kind == "pixels" ? ObservedKind::pixels
                                     : ObservedKind::numbers;
  for (const json& each : list_of(part, "shape", kMostSides)) {
    observed.shape.push_back(whole_number(each, kMostBytes, "a side of observation " + name));
    require(observed.bytes() <= kMostBytes, "observation {} is too large", name);
  }
  require(observed.kind != ObservedKind::pixels || observed.shape.size() == 3,
          "observation {} has not the shape of pixels, [channels, rows, columns]", name);
  if (observed.kind == ObservedKind::codes) {
    observed.codes = whole_number(part.at("codes"), 256, "the number of codes of " + name);
  }
  return observed;
}

/// An entry of a box's limits; null: there is none.
float limit(const json& value, float infinite) {
  const double number = value.is_null() ? infinite : value.get<double>();
  return std::abs(number) > std::numeric_limits<float>::max()
             ? static_cast<float>(std::copysign(infinite, number))
             : static_cast<float>(number);
}

ActionSpec read_actions(const json& actions) {
  ActionSpec spec;
  if (actions.contains("choices")) {
    for (const json& each : list_of(actions, "choices", kMostActions))
      spec.choices.push_back(whole_number(each, kMostChoices, "a number of choices"));
    require(!spec.choices.empty() && spec.parameters() <= kMostChoices,
            "the choices of an action are not from 1 to {} together", kMostChoices);
    return spec;
  }
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const json& each : list_of(actions, "low", kMostActions))
    spec.low.push_back(limit(each, -kInfinite));
  for (const json& each : list_of(actions, "high", kMostActions))
    spec.high.push_back(limit(each, kInfinite));
  require(!spec.low.empty() && spec.low.size() == spec.high.size(),
          "the lower and upper limits of actions are not equally many");
  for (std::size_t i = 0; i < spec.low.size(); ++i) {
    require(spec.low[i] < spec.high[i], "number {} of an action has equal limits", i);
  }
  return spec;
}

WorkerAnswer read_spec(const json& answer) {
  require(answer.at("protocol") == kEnvironmentProtocol, "it speaks another protocol than {}",
          kEnvironmentProtocol);
  WorkerAnswer read;
  for (const json& each : list_of(answer, "observations", kMostParts)) {
    Observed part = read_part(each);
    const auto has_its_name = [&](const Observed& other) { return other.name == part.name; };
    require(std::ranges::none_of(read.spec.observations, has_its_name),
            "two observations are named {}", part.name);
    read.spec.observations.push_back(std::move(part));
  }
  const std::int64_t bytes = read.spec.observation_bytes();
  require(bytes >= 1 && bytes <= kMostBytes, "an observation has {} bytes, not 1 to {}", bytes,
          kMostBytes);
  read.spec.actions = read_actions(answer.at("actions"));
  read.package = plain(answer.value("package", json()));
  read.hash = plain(answer.value("hash", json()));
  return read;
}

}  // namespace

std::string task_line(const WorkerSettings& settings, EpisodeSet set, std::int64_t first,
                      int count) {
  json line = json::parse(settings.request);
  line.update({{"protocol", kEnvironmentProtocol},
               {"environments", count},
               {"first", first},
               {"set", set == EpisodeSet::training ? "training" : "validation"},
               {"scores", settings.scores}});
  return line.dump() + "\n";
}

WorkerAnswer read_answer(const WorkerSettings& settings, std::string_view line) {
  const json answer = parse(line);
  if (answer.is_null() || answer.contains("error")) {
    const WorkerFailed error = read_error(line);
    throw UsageError(fmt::format("environment {}: {}", settings.name, error.what()), error.hint);
  }
  try {
    WorkerAnswer read = read_spec(answer);
    read.spec.scores = {"reward"};
    read.spec.scores.insert(read.spec.scores.end(), settings.scores.begin(), settings.scores.end());
    return read;
  } catch (const std::exception& wrong) {
    throw UsageError(fmt::format("environment {}: its worker's spec cannot be used: {}",
                                 settings.name, plain(wrong.what())),
                     "docs/simulators.md says what a worker answers");
  }
}

std::string describe(const WorkerAnswer& answer) {
  constexpr const char* kKinds[] = {"codes", "pixels", "numbers"};
  std::string words;
  for (const Observed& each : answer.spec.observations) {
    words +=
        fmt::format("{} {} {}, ", each.name, json(each.shape).dump(),
                    each.kind == ObservedKind::codes ? fmt::format("codes below {}", each.codes)
                                                     : kKinds[static_cast<std::size_t>(each.kind)]);
  }
  const ActionSpec& actions = answer.spec.actions;
  words += actions.is_box() ? fmt::format("actions from {} to {}", json(actions.low).dump(),
                                          json(actions.high).dump())
                            : fmt::format("choices {}", json(actions.choices).dump());
  if (!answer.package.empty()) words += ", of " + answer.package;
  return answer.hash.empty() ? words : words + ", source " + answer.hash;
}

WorkerFailed read_error(std::string_view line) {
  const json error = parse(line);
  if (error.is_null() || !error.contains("error")) {
    const std::string quoted =
        json(std::string(line.substr(0, 80))).dump(-1, ' ', true, json::error_handler_t::replace);
    return WorkerFailed("its worker said what is no answer: " + plain(quoted));
  }
  const json environment = error.value("environment", json());
  const bool is_known =
      environment.is_number_unsigned() && environment.get<std::uint64_t>() < 1U << 30U;
  return WorkerFailed(plain(error["error"]), plain(error.value("hint", json())),
                      is_known ? environment.get<int>() : -1);
}

void check_values(const Observed& part, const std::uint8_t* values, int number) {
  const std::uint8_t* const end = values + part.bytes();
  if (part.kind == ObservedKind::codes && *std::max_element(values, end) >= part.codes) {
    throw WorkerFailed(fmt::format("observed code {} in {}, which has codes below {}",
                                   *std::max_element(values, end), part.name, part.codes),
                       "", number);
  }
  for (; part.kind == ObservedKind::numbers && values < end; values += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, values, sizeof value);
    if (std::isfinite(value)) continue;
    throw WorkerFailed(fmt::format("observed {} in {}", value, part.name), "", number);
  }
}

WorkerLayout layout_of(const EnvironmentSpec& spec, int count) {
  constexpr std::int64_t kBoundary = 64;
  constexpr std::int64_t kFloat = sizeof(float);
  WorkerLayout layout;
  layout.size = kBoundary;  // the header's
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t begin = layout.size;
    layout.size += (bytes * count + kBoundary - 1) / kBoundary * kBoundary;
    return begin;
  };
  layout.seeds = take(sizeof(std::uint32_t));
  layout.actions = take(spec.actions.values() * kFloat);
  layout.rewards = take(kFloat);
  layout.endings = take(1);
  layout.scores = take((static_cast<std::int64_t>(spec.scores.size()) - 1) * kFloat);
  for (const Observed& each : spec.observations) {
    layout.observations.push_back(take(each.bytes()));
    layout.last_observations.push_back(take(each.bytes()));
  }
  return layout;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerLayout, size, seeds, actions, rewards, endings, scores,
                                   observations, last_observations)

std::string layout_line(const WorkerLayout& layout) {
  return json(layout).dump() + "\n";
}

}  // namespace dtool::trainer
