// SPDX-License-Identifier: MIT
// Comma-separated lists; each word is looked up in a table.
#include "trainer/settings/comm_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

constexpr std::int64_t kLeastSize = 4;
constexpr std::int64_t kMostSize = std::int64_t{4} << 30;
constexpr std::int64_t kStep = 4;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const auto comma = text.find(',');
    words.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

std::int64_t parse_size(std::string_view text) {
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const int shift = unit.empty()                 ? 0
                    : unit == "k" || unit == "K" ? 10
                    : unit == "M" || unit == "m" ? 20
                    : unit == "G" || unit == "g" ? 30
                                                 : -1;
  if (error != std::errc() || shift < 0 || value < 0 || value > (kMostSize >> shift) ||
      (value << shift) < kLeastSize) {
    throw UsageError(
        fmt::format("--sizes: '{}' is not a size from {} bytes to 4G", text, kLeastSize),
        "write sizes as 4k,1M or as a range, 1k-16M");
  }
  return value << shift;
}

constexpr Way kWays[] = {Way::library,          Way::links,   Way::ring, Way::pairwise,
                         Way::halving_doubling, Way::doubling};

template <class Each>
void add_once(std::vector<Each>& list, const Each& element) {
  if (std::find(list.begin(), list.end(), element) == list.end()) list.push_back(element);
}

bool is_called(Way way, std::string_view word) {
  return word == to_string(way);
}

bool is_called(Operation operation, std::string_view word) {
  if (word == to_string(operation)) return true;
  if (operation == Operation::send_recv) return word == "send" || word == "recv";
  return operation == Operation::isend_irecv && (word == "isend" || word == "irecv");
}

/// The elements of `known` that a flag's value lists, each once. Throws UsageError.
template <class Each, std::size_t count>
std::vector<Each> parse_names(const char* flag, std::string_view text, const Each (&known)[count]) {
  std::vector<Each> list;
  for (const auto word : split(text)) {
    const auto found =
        std::ranges::find_if(known, [&](Each each) { return is_called(each, word); });
    if (found == std::end(known)) {
      std::vector<std::string_view> names;
      for (const Each each : known) names.push_back(to_string(each));
      throw UsageError(fmt::format("--{}: there is no '{}'", flag, word),
                       fmt::format("there are {}", fmt::join(names, ", ")));
    }
    add_once(list, *found);
  }
  return list;
}

}  // namespace

std::string_view to_string(Operation operation) {
  constexpr std::string_view kNames[] = {"send_recv",  "isend_irecv", "broadcast",
                                         "reduce",     "all_reduce",  "gather",
                                         "all_gather", "scatter",     "barrier"};
  return kNames[static_cast<std::size_t>(operation)];
}

std::string_view to_string(Way way) {
  constexpr std::string_view kNames[] = {"auto",     "library",          "links",   "ring",
                                         "pairwise", "halving_doubling", "doubling"};
  return kNames[static_cast<std::size_t>(way)];
}

bool can_do(Operation operation, Way way) {
  if (way == Way::library) return true;
  return way == Way::links
             ? operation == Operation::send_recv || operation == Operation::isend_irecv
             : operation == Operation::all_reduce;
}

CommOptions::CommOptions()
    : sizes(parse_sizes("1k-16M")),
      operations(std::begin(kOperations), std::end(kOperations)),
      ways(std::begin(kWays), std::end(kWays)) {}

std::vector<std::int64_t> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const auto word : split(text)) {
    const auto dash = word.find('-');
    const std::int64_t first = parse_size(word.substr(0, dash));
    const std::int64_t last =
        dash == std::string_view::npos ? first : parse_size(word.substr(dash + 1));
    if (last < first) {
      throw UsageError(fmt::format("--sizes: '{}' begins above its end", word),
                       "write a range as 1k-16M");
    }
    for (std::int64_t size = first; size <= last; size *= kStep) add_once(sizes, size);
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<Operation> parse_operations(std::string_view text) {
  auto operations = parse_names("operations", text, kOperations);
  std::ranges::sort(operations);
  return operations;
}

std::vector<Way> parse_ways(std::string_view text) {
  return parse_names("algorithms", text, kWays);
}

Carrier parse_carrier(std::string_view text) {
  if (text == "links") return Carrier::links;
  if (text == "library") return Carrier::library;
  throw UsageError(fmt::format("--messages: '{}' is neither links nor library", text));
}

Backend parse_backend(std::string_view text) {
  if (text == "auto") return Backend::automatic;
  if (text == "gloo") return Backend::gloo;
  if (text == "nccl") return Backend::nccl;
  throw UsageError(fmt::format("--backend: there is no '{}'", text), "there are auto, gloo, nccl");
}

}  // namespace dtool::trainer
