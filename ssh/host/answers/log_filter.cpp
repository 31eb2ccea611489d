// SPDX-License-Identifier: MIT
#include "ssh/host/answers/log_filter.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace dtool::host {

void Pattern::Free::operator()(regex_t* compiled) const {
  ::regfree(compiled);
  delete compiled;
}

Pattern::Pattern(const std::string& text) {
  if (text.size() > kLongestPattern)
    throw std::runtime_error("it has more than " + std::to_string(kLongestPattern) + " bytes");
  if (text.find('\0') != text.npos) throw std::runtime_error("it has a NUL");
  auto compiled = std::make_unique<regex_t>();
  const int fault = ::regcomp(compiled.get(), text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (fault != 0) {
    std::array<char, 200> why{};
    ::regerror(fault, compiled.get(), why.data(), why.size());
    throw std::runtime_error(why.data());
  }
  compiled_.reset(compiled.release());
}

bool Pattern::is_in(std::string_view line) const {
  std::string text(line);
  std::replace(text.begin(), text.end(), '\0', ' ');
  return ::regexec(compiled_.get(), text.c_str(), 0, nullptr, 0) == 0;
}

LogFilter::LogFilter(const LogRequest& request) {
  for (const std::int64_t rank : request.ranks) ranks_.insert(static_cast<int>(rank));
  if (!request.pattern.text.empty()) pattern_ = std::make_unique<Pattern>(request.pattern.text);
}

void LogFilter::set_ranks(const LogRanks& ranks) {
  are_marked_ = ranks.are_marked;
  is_unmarked_of_rank_ =
      std::ranges::any_of(ranks.ranks, [this](int rank) { return ranks_.contains(rank); });
}

bool LogFilter::lets_through(std::string_view line) const {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  bool is_of_rank = ranks_.empty() || is_unmarked_of_rank_;
  if (are_marked_) {
    const MarkedLine marked = read_mark(line);
    line = marked.text;
    is_of_rank = ranks_.empty() || (marked.rank && ranks_.contains(*marked.rank));
  }
  if (!is_of_rank || !pattern_) return is_of_rank;
  // A line that a program redraws is many: the time that a pattern takes grows with their square.
  for (;;) {
    const std::size_t end = line.find('\r');
    if (pattern_->is_in(line.substr(0, end))) return true;
    if (end == line.npos) return false;
    line.remove_prefix(end + 1);
  }
}

void LogFilter::take(std::string_view line, std::string& passed) {
  if (lets_through(line)) passed += line;
}

std::string LogFilter::add(std::string_view bytes) {
  std::string passed;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end == bytes.npos ? end : end + 1);
    bytes.remove_prefix(part.size());
    if (open_.empty() && part.ends_with('\n')) {
      take(part, passed);
      continue;
    }
    open_ += part;
    if (open_.ends_with('\n') || open_.size() >= kLongestLine)
      take(std::exchange(open_, {}), passed);
  }
  return passed;
}

std::string LogFilter::rest() {
  std::string passed;
  if (!open_.empty()) take(std::exchange(open_, {}), passed);
  return passed;
}

}  // namespace dtool::host
