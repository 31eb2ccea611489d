// SPDX-License-Identifier: MIT
// Unfolds host patterns to names, reads lists of hosts with the operators of sets, and folds names
// to patterns.
#include "ssh/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dtool::ssh {
namespace {

// The most digits that std::uint64_t holds without overflow.
constexpr std::size_t kMostDigits = 18;

[[noreturn]] void refuse_pattern(std::string_view pattern, std::string_view fault) {
  throw std::invalid_argument(fmt::format("host pattern '{}': {}", pattern, fault));
}

[[noreturn]] void refuse_size(std::string_view pattern) {
  refuse_pattern(pattern, fmt::format("it names more than {} hosts", kMostHosts));
}

std::string_view trim(std::string_view text) {
  const std::string_view::size_type begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_padded(std::string_view digits) {
  return digits.size() > 1 && digits.front() == '0';
}

std::uint64_t value_of(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The digits of `value` in a range that begins with `first`; padded to the width of `first` if that
// is padded.
std::string digits_in_range(std::uint64_t value, std::string_view first) {
  return fmt::format("{:0{}}", value, is_padded(first) ? first.size() : 1);
}

// An element of a list of hosts, and the operator before it: one of `,!&^`; `,` for the first.
struct Element {
  char op = ',';
  std::string_view pattern;
};

// Cuts at the operators outside brackets, and finds brackets that do not pair.
std::vector<Element> split_list(std::string_view list, std::string_view operators) {
  std::vector<Element> elements;
  std::size_t begin = 0;
  char op = ',';
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const bool at_end = i == list.size();
    if (at_end && inside)
      refuse_pattern(trim(list.substr(begin)),
                     "'[' has no partner\nhint: ']' closes it, as in 'gpu[1-8]'");
    if (at_end || (!inside && operators.find(list[i]) != operators.npos)) {
      elements.push_back({op, trim(list.substr(begin, i - begin))});
      if (elements.back().pattern.empty()) {
        throw std::invalid_argument(
            trim(list).empty() ? "the list of hosts is empty"
                               : fmt::format("the list of hosts '{}' has an empty element", list));
      }
      if (!at_end) op = list[i];
      begin = i + 1;
    } else if (list[i] == '[') {
      if (inside) refuse_pattern(trim(list.substr(begin)), "'[' stands inside '['");
      inside = true;
    } else if (list[i] == ']') {
      if (!inside) refuse_pattern(trim(list.substr(begin)), "']' has no partner");
      inside = false;
    }
  }
  return elements;
}

void require_number(std::string_view digits, std::string_view range, std::string_view pattern) {
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) {
    refuse_pattern(pattern,
                   fmt::format("'{}' is neither a number nor a range such as 01-08", range));
  }
  if (digits.size() > kMostDigits) {
    refuse_pattern(pattern, fmt::format("'{}' has more than {} digits", digits, kMostDigits));
  }
}

// Appends the numbers of `range`, `5`, `01-08` or `0-14/2`, as text.
void unfold_range(std::string_view range, std::string_view pattern, std::vector<std::string>& out) {
  const std::string_view ends = range.substr(0, range.find('/'));
  const std::string_view::size_type dash = ends.find('-');
  const std::string_view first = trim(ends.substr(0, dash));
  const std::string_view last =
      dash == std::string_view::npos ? first : trim(ends.substr(dash + 1));
  require_number(first, range, pattern);
  require_number(last, range, pattern);
  std::uint64_t step = 1;
  if (ends.size() < range.size()) {
    const std::string_view digits = trim(range.substr(ends.size() + 1));
    require_number(digits, range, pattern);
    step = value_of(digits);
    if (step == 0 || dash == std::string_view::npos)
      refuse_pattern(pattern,
                     fmt::format("'{}' has {}\nhint: [0-14/2] names every second number", range,
                                 step == 0 ? "a step of 0" : "a step and no range"));
  }
  if (is_padded(last) && first.size() != last.size()) {
    refuse_pattern(pattern, fmt::format("the ends of '{}' are padded to different widths", range));
  }
  if (value_of(first) > value_of(last)) {
    refuse_pattern(pattern, fmt::format("the range '{}' runs backwards", range));
  }
  if ((value_of(last) - value_of(first)) / step >= kMostHosts - std::min(kMostHosts, out.size())) {
    refuse_size(pattern);
  }
  for (std::uint64_t value = value_of(first); value <= value_of(last); value += step) {
    out.push_back(digits_in_range(value, first));
  }
}

// The words that a bracket with `content` stands for.
std::vector<std::string> unfold_bracket(std::string_view content, std::string_view pattern) {
  if (content.find(':') != std::string_view::npos) return {fmt::format("[{}]", content)};  // IPv6
  std::vector<std::string> numbers;
  for (std::size_t begin = 0; begin <= content.size();) {
    const std::size_t end = std::min(content.find(',', begin), content.size());
    const std::string_view range = trim(content.substr(begin, end - begin));
    if (range.empty()) refuse_pattern(pattern, "a range in brackets is empty");
    unfold_range(range, pattern, numbers);
    begin = end + 1;
  }
  return numbers;
}

// pdsh and Slurm write the digit before `1[9-10]` to each number (19 and 110), ClusterShell to the
// ends of the range (19 to 110).
void require_one_reading(std::string_view before, const std::vector<std::string>& choices,
                         std::string_view pattern) {
  if (before.empty() || !is_digit(before.back())) return;
  for (std::size_t width = 1; width < kMostDigits; ++width) {
    if (std::ranges::count(choices, std::string(width, '9')) == 0 ||
        std::ranges::count(choices, "1" + std::string(width, '0')) == 0)
      continue;
    refuse_pattern(pattern,
                   "the numbers behind a digit grow by a digit, which pdsh and ClusterShell read "
                   "differently\nhint: put whole numbers into the brackets, as in 'n[19,110]'");
  }
}

// The words of one pattern, at most `room`.
std::vector<std::string> unfold(std::string_view pattern, std::size_t room) {
  std::vector<std::string> words = {""};
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const std::size_t open = std::min(rest.find('['), rest.size());
    const std::string_view before = rest.substr(0, open);
    for (std::string& word : words) word += before;
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find(']');
    const std::vector<std::string> choices = unfold_bracket(rest.substr(1, close - 1), pattern);
    require_one_reading(before, choices, pattern);
    rest.remove_prefix(close + 1);
    if (choices.size() > room / words.size()) refuse_size(pattern);
    std::vector<std::string> longer;
    longer.reserve(words.size() * choices.size());
    for (const std::string& word : words) {
      for (const std::string& choice : choices) longer.push_back(word + choice);
    }
    words = std::move(longer);
  }
  return words;
}

bool is_bare(const Host& host) {
  return host.user.empty() && host.port == 0;
}

// `gpu2` and `ann@gpu2` may be meant as one host or as two: neither answer would be safe.
void require_like_spelling(const std::vector<Host>& hosts, const Element& element,
                           const std::vector<Host>& others) {
  std::unordered_map<std::string_view, const Host*> bare, full;
  for (const Host& each : hosts) (is_bare(each) ? bare : full).emplace(each.name, &each);
  for (const Host& other : others) {
    const auto& unlike = is_bare(other) ? full : bare;
    const auto found = unlike.find(other.name);
    if (found == unlike.end()) continue;
    throw std::invalid_argument(
        fmt::format("'{}' before '{}{}' and '{}' in it may be one host or two\n"
                    "hint: name its user and port on both sides, or on none",
                    to_string(*found->second), element.op, element.pattern, to_string(other)));
  }
}

void keep_first(std::vector<Host>& hosts) {
  std::unordered_set<std::string> seen;
  std::erase_if(hosts, [&](const Host& each) { return !seen.insert(mark_of(each)).second; });
}

std::unordered_set<std::string> names_of(const std::vector<Host>& hosts) {
  std::unordered_set<std::string> names;
  for (const Host& each : hosts) names.insert(to_string(each));
  return names;
}

// `hosts` with or without `others`, as the operator before the element says.
void combine(std::vector<Host>& hosts, const Element& element, const std::vector<Host>& others) {
  if (element.op != ',') require_like_spelling(hosts, element, others);
  std::unordered_set<std::string> both;  // on the left, if `^` looks there
  if (element.op == '^') both = names_of(hosts);
  if (element.op != ',') {
    const std::unordered_set<std::string> right = names_of(others);
    std::erase_if(hosts, [&](const Host& each) {
      return right.contains(to_string(each)) != (element.op == '&');
    });
  }
  if (element.op != ',' && element.op != '^') return;
  for (const Host& each : others) {
    if (both.contains(to_string(each))) continue;
    if (hosts.size() == kMostHosts) refuse_size(element.pattern);
    hosts.push_back(each);
  }
}

// Reads lists of hosts with groups in groups.
class GroupReader {
 public:
  explicit GroupReader(const GroupLookup& groups) : groups_(groups) {}

  // From left to right, as ClusterShell does: no operator comes before another one.
  std::vector<Host> read(std::string_view list) {
    std::vector<Host> hosts;
    for (const Element& element : split_list(list, ",!&^")) {
      std::vector<Host> others;
      for (const std::string& word : unfold(element.pattern, kMostHosts)) {
        if (word.starts_with('@')) {
          combine(others, {',', word}, read_group(word.substr(1)));
        } else {
          others.push_back(parse_host(word));
        }
      }
      combine(hosts, element, others);
    }
    return hosts;
  }

 private:
  const std::vector<Host>& read_group(const std::string& name) {
    if (name.empty()) throw std::invalid_argument("the group name after '@' is empty");
    if (const auto known = read_.find(name); known != read_.end()) return known->second;
    if (std::ranges::find(open_, name) != open_.end()) {
      throw std::invalid_argument(fmt::format("group '@{}' holds itself", name));
    }
    if (!groups_) throw std::invalid_argument(fmt::format("there is no group '@{}'", name));
    const std::string list = groups_(name);
    open_.push_back(name);
    try {
      std::vector<Host> hosts = read(list);
      if (name == "*") keep_first(hosts);
      open_.pop_back();
      return read_[name] = std::move(hosts);
    } catch (const std::invalid_argument& fault) {
      throw std::invalid_argument(fmt::format("in group '@{}': {}", name, fault.what()));
    }
  }

  const GroupLookup& groups_;
  std::vector<std::string> open_;  // the groups being read, outermost first
  std::map<std::string, std::vector<Host>> read_;
};

// A run of digits in a name: where a bracket may be put.
struct Digits {
  std::size_t begin = 0;
  std::size_t size = 0;
};

std::vector<Digits> find_digits(std::string_view name) {
  std::vector<Digits> all;
  if (name.find_first_of("[],") != std::string_view::npos) return all;  // an address in brackets
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t begin = i;
    while (i < name.size() && is_digit(name[i])) ++i;
    if (i > begin && i - begin <= kMostDigits) all.push_back({begin, i - begin});
    if (i == begin) ++i;
  }
  return all;
}

// A name without one of its runs of digits; names of one frame share a bracket.
struct Frame {
  std::string before;
  std::string after;
  bool has_bracket = true;
  auto operator<=>(const Frame&) const = default;
};

Frame frame_of(const std::string& name, const std::optional<Digits>& digits) {
  if (!digits) return {name, "", false};
  return {name.substr(0, digits->begin), name.substr(digits->begin + digits->size)};
}

// Writes numbers as ranges in brackets, `[01-03,07]`; one number stays bare.
std::string fold_numbers(std::vector<std::string> numbers) {
  std::ranges::sort(numbers, {}, [](const std::string& digits) {
    return std::make_pair(value_of(digits), digits.size());
  });
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
  if (numbers.size() == 1) return numbers.front();
  std::string ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::string& first = numbers[i];
    std::size_t next = i + 1;
    while (next < numbers.size() &&
           numbers[next] == digits_in_range(value_of(first) + (next - i), first)) {
      ++next;
    }
    if (!ranges.empty()) ranges += ',';
    ranges += next == i + 1 ? first : fmt::format("{}-{}", first, numbers[next - 1]);
    i = next;
  }
  return fmt::format("[{}]", ranges);
}

}  // namespace

std::vector<std::string> expand(std::string_view patterns) {
  std::vector<std::string> words;
  for (const Element& element : split_list(patterns, ",")) {
    if (words.size() == kMostHosts) refuse_size(element.pattern);
    std::vector<std::string> more = unfold(element.pattern, kMostHosts - words.size());
    words.insert(words.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  return words;
}

std::vector<Host> parse_hosts(std::string_view runs_on, const GroupLookup& groups) {
  std::vector<Host> hosts = GroupReader(groups).read(runs_on);
  require_distinct(hosts);
  if (hosts.empty())
    throw std::invalid_argument(fmt::format("the list of hosts '{}' leaves no host", runs_on));
  return hosts;
}

std::vector<Host> parse_set(std::string_view patterns, const GroupLookup& groups) {
  std::vector<Host> hosts = GroupReader(groups).read(patterns);
  keep_first(hosts);
  return hosts;
}

std::string fold(const std::vector<std::string>& names) {
  // The bracket goes where it covers the most names: `gpu01:22` folds over gpu01, `10.0.0.1:2201`
  // over its ports if those differ.
  std::map<Frame, std::size_t> members;
  for (const std::string& name : names) {
    for (const Digits& digits : find_digits(name)) ++members[frame_of(name, digits)];
  }
  std::vector<std::pair<Frame, std::vector<std::string>>> folded;
  std::map<Frame, std::size_t> place;
  for (const std::string& name : names) {
    std::optional<Digits> best;
    std::size_t most = 0;
    for (const Digits& digits : find_digits(name)) {
      const std::size_t count = members[frame_of(name, digits)];
      if (count >= most) best = digits, most = count;
    }
    const Frame frame = frame_of(name, best);
    const auto [where, is_new] = place.try_emplace(frame, folded.size());
    if (is_new) folded.push_back({frame, {}});
    if (best) folded[where->second].second.push_back(name.substr(best->begin, best->size));
  }
  std::string text;
  for (const auto& [frame, numbers] : folded) {
    if (!text.empty()) text += ',';
    text += frame.before + (frame.has_bracket ? fold_numbers(numbers) : "") + frame.after;
  }
  return text;
}

}  // namespace dtool::ssh
