// SPDX-License-Identifier: MIT
#include "sync/exclude.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <stdexcept>

namespace dtool::tree_sync {

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
    const std::string path(name.substr(0, end));
    for (const Pattern& pattern : patterns_) {
      if (pattern.is_folder && !is_folder) continue;
      const char* subject = path.c_str() + (pattern.is_rooted ? 0 : begin);
      if (::fnmatch(pattern.text.c_str(), subject, FNM_PATHNAME) == 0) return true;
    }
    begin = end + 1;
  }
  return false;
}

}  // namespace dtool::tree_sync
