// SPDX-License-Identifier: MIT
#include "trainer/environments/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using nlohmann::json;

// The limits of a spec. An observation may be a picture of 4096 x 4096 in three colours.
constexpr std::size_t kMostParts = 64;
constexpr std::size_t kLongestName = 64;
constexpr std::size_t kMostSides = 8;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 26;
constexpr std::size_t kMostActions = 4096;
constexpr std::int64_t kMostChoices = 1 << 16;
constexpr std::size_t kLongestWords = 2000;

/// What is wrong with a spec, before it is known whose it is.
struct Wrong {
  std::string what;
};

/// Text of others on one line, without what steers a terminal.
std::string plain(const json& text, std::size_t longest = kLongestWords) {
  if (!text.is_string()) return "";
  std::string line = text.get<std::string>().substr(0, longest);
  std::ranges::replace_if(
      line, [](unsigned char each) { return each < 0x20 || each == 0x7f; }, ' ');
  return line;
}

std::int64_t whole_number(const json& value, std::int64_t most, const std::string& what) {
  if (!value.is_number_integer()) throw Wrong{what + " is not a whole number"};
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                        : value.get<std::int64_t>() <= most;
  if (!fits || value.get<std::int64_t>() < 1) {
    throw Wrong{fmt::format("{} is not from 1 to {}", what, most)};
  }
  return value.get<std::int64_t>();
}

const json& list_of(const json& object, const char* key, std::size_t most,
                    const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) throw Wrong{what + " is not a list"};
  if (found->size() > most) {
    throw Wrong{fmt::format("{} has {} entries, more than {}", what, found->size(), most)};
  }
  return *found;
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::ranges::all_of(name, [](unsigned char each) { return each > 0x20 && each < 0x7f; });
}

ObservedKind kind_of(const json& part, const std::string& name) {
  const std::string word = part.contains("kind") ? plain(part["kind"]) : "";
  if (word == "codes") return ObservedKind::codes;
  if (word == "pixels") return ObservedKind::pixels;
  if (word == "numbers") return ObservedKind::numbers;
  throw Wrong{fmt::format("the kind of observation {} is '{}', not codes, pixels or numbers", name,
                          word.substr(0, kLongestName))};
}

Observed read_part(const json& part) {
  if (!part.is_object() || !part.contains("name")) throw Wrong{"an observation has no name"};
  Observed observed;
  if (part["name"].is_string()) observed.name = part["name"].get<std::string>();
  if (!is_name(observed.name)) {
    throw Wrong{fmt::format("the name of an observation is not 1 to {} visible characters of ASCII",
                            kLongestName)};
  }
  const std::string& name = observed.name;
  observed.kind = kind_of(part, name);
  const std::string what = "the shape of observation " + name;
  std::int64_t values = 1;
  for (const json& each : list_of(part, "shape", kMostSides, what)) {
    observed.shape.push_back(whole_number(each, kMostBytes, "a side of observation " + name));
    values *= observed.shape.back();
    if (values > kMostBytes)
      throw Wrong{fmt::format("{} has more than {} values", what, kMostBytes)};
  }
  if (observed.kind == ObservedKind::pixels && observed.shape.size() != 3) {
    throw Wrong{what + " is not that of pixels, [channels, rows, columns]"};
  }
  if (observed.kind == ObservedKind::codes) {
    const auto codes = part.find("codes");
    observed.codes = whole_number(codes == part.end() ? json() : *codes, 256,
                                  "the number of codes of observation " + name);
  }
  return observed;
}

/// An entry of a box's limits; null: there is none.
float limit(const json& value, float without) {
  if (value.is_null()) return without;
  if (!value.is_number()) throw Wrong{"a limit of the actions is not a number"};
  const auto number = value.get<double>();
  if (std::abs(number) > std::numeric_limits<float>::max()) return std::copysign(without, number);
  return static_cast<float>(number);
}

ActionSpec read_actions(const json& actions) {
  ActionSpec spec;
  if (!actions.is_object()) throw Wrong{"the actions are not described"};
  if (actions.contains("choices")) {
    for (const json& each : list_of(actions, "choices", kMostActions, "the choices"))
      spec.choices.push_back(whole_number(each, kMostChoices, "a number of choices"));
    if (spec.choices.empty() || spec.parameters() > kMostChoices) {
      throw Wrong{fmt::format("the choices are not from 1 to {} together", kMostChoices)};
    }
    return spec;
  }
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const json& each : list_of(actions, "low", kMostActions, "the actions' lower limits"))
    spec.low.push_back(limit(each, -kInfinite));
  for (const json& each : list_of(actions, "high", kMostActions, "the actions' upper limits"))
    spec.high.push_back(limit(each, kInfinite));
  if (spec.low.empty() || spec.low.size() != spec.high.size()) {
    throw Wrong{"the actions' lower and upper limits are not equally many"};
  }
  for (std::size_t i = 0; i < spec.low.size(); ++i) {
    if (!(spec.low[i] < spec.high[i])) {
      throw Wrong{fmt::format("number {} of an action has no value between its limits", i)};
    }
  }
  return spec;
}

WorkerAnswer read_spec(const json& answer) {
  const auto part_of = [&](const char* key) {
    const auto found = answer.find(key);
    return found == answer.end() ? json() : *found;
  };
  if (part_of("protocol") != kEnvironmentProtocol) {
    throw Wrong{fmt::format("it speaks protocol {}, not {}",
                            part_of("protocol").dump().substr(0, 20), kEnvironmentProtocol)};
  }
  WorkerAnswer read;
  for (const json& each : list_of(answer, "observations", kMostParts, "the observations")) {
    Observed part = read_part(each);
    const auto is_it = [&](const Observed& other) { return other.name == part.name; };
    if (std::ranges::any_of(read.spec.observations, is_it)) {
      throw Wrong{fmt::format("two observations are named {}", part.name)};
    }
    read.spec.observations.push_back(std::move(part));
  }
  const std::int64_t bytes = read.spec.observation_bytes();
  if (bytes < 1 || bytes > kMostBytes) {
    throw Wrong{fmt::format("an observation has {} bytes, not from 1 to {}", bytes, kMostBytes)};
  }
  read.spec.actions = read_actions(part_of("actions"));
  read.package = plain(part_of("package"), 200);
  read.hash = plain(part_of("hash"), kLongestName);
  return read;
}

std::optional<json> parse(std::string_view line) {
  // Values deeper than any answer's are left out: copies of a value are as deep as it is.
  const auto is_shallow = [](int depth, json::parse_event_t, json&) { return depth < 16; };
  json value = json::parse(line, is_shallow, false);
  if (!value.is_object()) return std::nullopt;
  return value;
}

}  // namespace

std::string task_line(const WorkerSettings& settings, EpisodeSet set, std::int64_t first,
                      int count) {
  json line = json::parse(settings.request);
  line["protocol"] = kEnvironmentProtocol;
  line["environments"] = count;
  line["first"] = first;
  line["set"] = set == EpisodeSet::training ? "training" : "validation";
  line["scores"] = settings.scores;
  return line.dump() + "\n";
}

WorkerAnswer read_answer(const WorkerSettings& settings, std::string_view line) {
  const auto answer = parse(line);
  if (!answer || answer->contains("error")) {
    const WorkerError error = read_error(line);
    throw UsageError(fmt::format("environment {}: {}", settings.name, error.message), error.hint);
  }
  try {
    WorkerAnswer read = read_spec(*answer);
    read.spec.scores = {"reward"};
    read.spec.scores.insert(read.spec.scores.end(), settings.scores.begin(), settings.scores.end());
    return read;
  } catch (const Wrong& wrong) {
    throw UsageError(fmt::format("environment {}: its worker's spec cannot be used: {}",
                                 settings.name, wrong.what),
                     "docs/environments.md says what a worker answers");
  }
}

std::string describe(const WorkerAnswer& answer) {
  constexpr const char* kKinds[] = {"codes", "pixels", "numbers"};
  std::string words = answer.package.empty() ? "no known package" : answer.package;
  for (const Observed& each : answer.spec.observations) {
    words += fmt::format(", {} {} {}", each.name, json(each.shape).dump(),
                         kKinds[static_cast<std::size_t>(each.kind)]);
    if (each.kind == ObservedKind::codes) words += fmt::format(" below {}", each.codes);
  }
  const ActionSpec& actions = answer.spec.actions;
  words += actions.is_box() ? fmt::format(", actions from {} to {}", json(actions.low).dump(),
                                          json(actions.high).dump())
                            : fmt::format(", choices {}", json(actions.choices).dump());
  return answer.hash.empty() ? words : words + ", source " + answer.hash;
}

WorkerError read_error(std::string_view line) {
  const auto error = parse(line);
  if (!error || !error->contains("error") || !(*error)["error"].is_string()) {
    const std::string begins(line.substr(0, 80));
    return {fmt::format("its worker said what is no answer: {}",
                        plain(json(begins).dump(-1, ' ', true, json::error_handler_t::replace))),
            "", -1};
  }
  WorkerError read{plain((*error)["error"]), plain(error->value("hint", json())), -1};
  const json environment = error->value("environment", json());
  if (environment.is_number_unsigned() && environment.get<std::uint64_t>() < 1U << 30U) {
    read.environment = environment.get<int>();
  }
  return read;
}

WorkerLayout layout_of(const EnvironmentSpec& spec, int count) {
  constexpr std::int64_t kBoundary = 64;
  WorkerLayout layout;
  std::int64_t end = kBoundary;  // the header's
  const auto take = [&](std::int64_t bytes) {
    const std::int64_t begin = end;
    end += (bytes * count + kBoundary - 1) / kBoundary * kBoundary;
    return begin;
  };
  constexpr std::int64_t kFloat = sizeof(float);
  layout.seeds = take(sizeof(std::uint32_t));
  layout.actions = take(spec.actions.values() * kFloat);
  layout.rewards = take(kFloat);
  layout.endings = take(1);
  layout.scores = take((static_cast<std::int64_t>(spec.scores.size()) - 1) * kFloat);
  for (const Observed& each : spec.observations) {
    layout.observations.push_back(take(each.bytes()));
    layout.last_observations.push_back(take(each.bytes()));
  }
  layout.size = end;
  return layout;
}

std::string layout_line(const WorkerLayout& layout) {
  const json line = {{"size", layout.size},
                     {"seeds", layout.seeds},
                     {"actions", layout.actions},
                     {"rewards", layout.rewards},
                     {"endings", layout.endings},
                     {"scores", layout.scores},
                     {"observations", layout.observations},
                     {"last_observations", layout.last_observations}};
  return line.dump() + "\n";
}

}  // namespace dtool::trainer
