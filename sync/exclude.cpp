// SPDX-License-Identifier: MIT
#include "sync/exclude.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <stdexcept>

namespace dtool::tree_sync {

namespace {

/// Whether a path matches a pattern that may have `**` between slashes.
bool matches(std::string_view pattern, std::string_view path) {
  const std::size_t end = pattern.find('/');
  const std::string part(pattern.substr(0, end));
  const std::string_view rest = end == pattern.npos ? "" : pattern.substr(end + 1);
  if (part == "**") {
    if (rest.empty()) return !path.empty();
    for (std::size_t begin = 0;; ++begin) {
      if (matches(rest, path.substr(begin))) return true;
      begin = path.find('/', begin);
      if (begin == path.npos) return false;
    }
  }
  const std::size_t slash = path.find('/');
  const std::string component(path.substr(0, slash));
  if (::fnmatch(part.c_str(), component.c_str(), FNM_PATHNAME) != 0) return false;
  if (end == pattern.npos || slash == path.npos) return end == pattern.npos && slash == path.npos;
  return matches(rest, path.substr(slash + 1));
}

}  // namespace

Excludes::Excludes(const std::vector<std::string>& patterns) {
  for (const std::string& given : patterns) {
    Pattern pattern;
    std::string_view text = given;
    while (text.starts_with("./")) text.remove_prefix(2);
    pattern.is_folder = text.ends_with('/');
    while (text.ends_with('/')) text.remove_suffix(1);
    pattern.is_rooted = text.find('/') != text.npos;
    while (text.starts_with('/')) text.remove_prefix(1);
    if (text.empty()) {
      throw std::invalid_argument(fmt::format("the pattern '{}' excludes nothing", given));
    }
    pattern.given = given;
    pattern.text = text;
    patterns_.push_back(pattern);
  }
}

bool Excludes::match_file(std::string_view name) const {
  return match(name, Kind::file);
}

bool Excludes::match_folder(std::string_view name) const {
  return match(name, Kind::folder);
}

bool Excludes::match(std::string_view name, Kind kind) const {
  if (patterns_.empty()) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const bool is_folder = end < name.size() || kind == Kind::folder;
    bool is_match = false;
    for (const Pattern& pattern : patterns_) {
      if (pattern.is_folder && !is_folder) continue;
      const std::size_t first = pattern.is_rooted ? 0 : begin;
      if (!matches(pattern.text, name.substr(first, end - first))) continue;
      is_match = pattern.is_used = true;
    }
    if (is_match) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<std::string> Excludes::unused() const {
  std::vector<std::string> unused;
  for (const Pattern& each : patterns_) {
    if (!each.is_used) unused.push_back(each.given);
  }
  return unused;
}

}  // namespace dtool::tree_sync
