// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "killfiles/nearest.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

CLI::Validator must_be_within(WholeNumbers numbers) {
  const auto check = [numbers](std::string& text) {
    const auto number = host::parse_number<std::uint64_t>(text);
    if (!number || *number < numbers.least || *number > numbers.most)
      return fmt::format("'{}' is not a whole number from {} to {}", text, numbers.least,
                         numbers.most);
    text = std::to_string(*number);  // zeros before it would make it octal for CLI11
    return std::string();
  };
  return CLI::Validator(check, "", "");
}

std::string must_not_be_empty(const std::string& text) {
  return text.empty() ? "the value is empty\nhint: is a shell variable empty?" : "";
}

}  // namespace

Option Option::check(const Check& check) const {
  option_->check(check);
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) const {
  const auto check = [words](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    const auto meant = killfiles::nearest(text, words);
    return fmt::format("'{}' is not one of {}{}", text, fmt::join(words, ", "),
                       meant ? fmt::format("\nhint: did you mean {}?", *meant) : "");
  };
  // Completion reads the words from the description.
  option_->check(CLI::Validator(check, fmt::format("{{{}}}", fmt::join(words, ","))));
  return *this;
}

Option Option::description(const std::string& text) const {
  option_->description(text);
  return *this;
}

Option Option::group(const std::string& title) const {
  option_->group(title);
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::take_all() const {
  option_->expected(1)->take_all();
  return *this;
}

Option Option::delimiter(char between) const {
  option_->delimiter(between);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

std::string Option::name() const {
  return option_->get_name();
}

bool Option::is_given() const {
  return option_->count() > 0;
}

Option Options::add_flag(const std::string& names, bool& value, const std::string& about) {
  return Option(command_.add_flag(names, value, about));
}

Option Options::add_flag(const std::string& names, std::string& value, const std::string& about) {
  return Option(command_.add_flag(names, value, about));
}

namespace {

template <typename Value>
CLI::Option* declare(CLI::App& command, const std::string& names, Value& value,
                     const std::string& about) {
  const std::size_t end = names.find(' ');
  CLI::Option* const option = command.add_option(names.substr(0, end), value, about);
  if (end != names.npos) option->type_name(names.substr(end + 1));
  return option;
}

}  // namespace

template <typename Value>
Option Options::add_option(const std::string& names, Value& value, const std::string& about) {
  constexpr bool is_list = std::is_same_v<Value, std::vector<std::string>>;
  CLI::Option* const option = declare(command_, names, value, about);
  if (is_list && names.starts_with('-')) option->allow_extra_args(false);
  if (is_list || std::is_same_v<Value, std::string>) option->check(must_not_be_empty);
  return Option(option);
}

template <typename Value>
Option Options::add_whole_number(const std::string& names, Value& value, const std::string& about,
                                 WholeNumbers numbers) {
  return Option(declare(command_, names, value, about)->transform(must_be_within(numbers)));
}

using Name = const std::string&;
template Option Options::add_option(Name, std::string&, Name);
template Option Options::add_option(Name, std::vector<std::string>&, Name);
template Option Options::add_option(Name, double&, Name);
template Option Options::add_option(Name, std::optional<double>&, Name);
template Option Options::add_whole_number(Name, int&, Name, WholeNumbers);
template Option Options::add_whole_number(Name, std::size_t&, Name, WholeNumbers);
template Option Options::add_whole_number(Name, std::optional<int>&, Name, WholeNumbers);
template Option Options::add_whole_number(Name, std::optional<std::uint64_t>&, Name, WholeNumbers);
template Option Options::add_whole_number(Name, std::vector<int>&, Name, WholeNumbers);

std::optional<Option> Options::find(const std::string& name) const {
  CLI::Option* const option = command_.get_option_no_throw(name);
  return option == nullptr ? std::nullopt : std::optional(Option(option));
}

GivenFlags Options::given() const {
  GivenFlags flags;
  for (const CLI::Option* option : std::as_const(command_).get_options()) {
    if (option->count() > 0 && option->nonpositional())
      flags[option->get_name()] = option->results();
  }
  return flags;
}

void Options::give(const std::string& name, const std::vector<std::string>& values) {
  CLI::Option* const option = command_.get_option_no_throw(name);
  if (option == nullptr) throw std::invalid_argument(fmt::format("there is no flag {}", name));
  // Earlier versions took an empty text for a flag that was left out.
  if (values == std::vector<std::string>{""}) return;
  try {
    option->clear();
    option->add_result(values);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(error.what());
  }
}

void Options::footer(const std::string& text) {
  command_.footer(text);
}

namespace {

constexpr auto kLargest = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::string must_be_seconds(const std::string& text) {
  constexpr double kShortest = 0.001;
  constexpr double kLongest = 365.0 * 24 * 3600;
  const auto seconds = host::parse_number<double>(text);
  // Written so that NaN is refused too.
  if (seconds && *seconds >= kShortest && *seconds <= kLongest) return "";
  return fmt::format("'{}' is not a number of seconds from {} to {:.0f}", text, kShortest,
                     kLongest);
}

std::chrono::milliseconds from_seconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::string must_be_count(const std::string& text) {
  const auto count = host::parse_number<std::uint32_t>(text);
  if (count && *count >= 1) return "";
  return fmt::format("'{}' is not a whole number from 1 to {}", text, kLargest);
}

Check must_be_from(double least, double most) {
  return [least, most](const std::string& text) {
    const auto number = host::parse_number<double>(text);
    // Written so that NaN is refused too.
    if (number && *number >= least && *number <= most) return std::string();
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
}

std::string note_on_home(const std::string& flag, const std::string& path) {
  const auto below = ssh::below(path, ssh::home_folder());
  if (!below) return "";
  return fmt::format(
      "{0}{1} is a path of this machine's home folder; {0}'~/{2}' (in quotes) is below the home "
      "folder of each host",
      flag, path, below == "." ? "" : below->native());
}

namespace {

std::optional<std::int64_t> seconds_in(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86400;
    default:
      return std::nullopt;
  }
}

std::optional<std::time_t> parse_time(std::string text, std::time_t now) {
  const bool is_utc = text.ends_with('Z');
  if (is_utc) text.pop_back();
  constexpr std::array kForms = {
      "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
      "%Y-%m-%d",          "%H:%M:%S",          "%H:%M"};
  for (const char* form : kForms) {
    std::tm time{};
    if (form[1] == 'H') {
      if (is_utc) {
        ::gmtime_r(&now, &time);
      } else {
        ::localtime_r(&now, &time);
      }
      time.tm_sec = 0;
    }
    const char* end = ::strptime(text.c_str(), form, &time);
    if (end == nullptr || *end != '\0') continue;
    const std::tm meant = time;
    time.tm_isdst = -1;
    const std::time_t found = is_utc ? ::timegm(&time) : std::mktime(&time);
    // There is no 31st of November.
    if (found == -1 || time.tm_mday != meant.tm_mday) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::seconds> parse_since(const std::string& text, std::time_t now) {
  constexpr std::int64_t kMost = 1'000'000'000;  // some thirty years
  if (text.empty()) return std::nullopt;
  if (const auto unit = seconds_in(text.back())) {
    const auto count = host::parse_number<std::uint32_t>(text.substr(0, text.size() - 1));
    if (!count || *count * *unit > kMost) return std::nullopt;
    return std::chrono::seconds(*count * *unit);
  }
  const auto time = parse_time(text, now);
  if (!time || *time > now || now - *time > kMost) return std::nullopt;
  return std::chrono::seconds(now - *time);
}

std::string must_be_since(const std::string& text) {
  if (parse_since(text, std::time(nullptr))) return "";
  return fmt::format(
      "'{}' is neither a length of time (30s, 10m, 2h, 3d) nor a time in the past "
      "(2026-11-25T14:30, 14:30, with Z for UTC)",
      text);
}

}  // namespace dtool::cli
