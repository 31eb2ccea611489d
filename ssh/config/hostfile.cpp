// SPDX-License-Identifier: MIT
// Reads hostfiles; `--hostfile` of every command comes here.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "ssh/host.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

// The words of a line without its comment; `=` is a word of its own, however it is spaced.
std::vector<std::string> words_of(std::string_view line) {
  std::string spaced;
  for (const char c : line.substr(0, line.find('#')))
    spaced += c == '=' ? " = " : std::string(1, c);
  std::istringstream stream(spaced);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

int read_count(const std::string& key, const std::string& digits) {
  const auto count = host::parse_number<int>(digits);
  if (!count || *count < 1)
    throw std::invalid_argument(fmt::format("{} '{}' is not a positive number", key, digits));
  return *count;
}

// Reads `host`, `host slots=N`, `host slots=N max_slots=M`.
HostfileEntry read_entry(const std::vector<std::string>& words) {
  HostfileEntry entry;
  const std::string& name = words.front();
  if (name.starts_with('[') && name.ends_with(']') && name.find(':') == name.npos) {
    throw std::invalid_argument(fmt::format(
        "{} is a group of an Ansible inventory\nhint: a hostfile has hosts alone, one a line; "
        "groups stand in [groups] of dtool.toml",
        name));
  }
  if (name.find(',') != name.npos || (name.find('[') != name.npos && !name.starts_with('['))) {
    throw std::invalid_argument(fmt::format(
        "'{}' is not one host\nhint: a hostfile has a host a line; ranges and commas are for "
        "--runs_on",
        name));
  }
  entry.host = parse_host(name);
  std::optional<int> slots;
  std::optional<int> most;
  for (std::size_t i = 1; i < words.size(); i += 3) {
    const std::string& key = words[i];
    const bool is_most = key == "max_slots" || key == "max-slots";
    if (!is_most && key != "slots") {
      throw std::invalid_argument(fmt::format(
          "unknown key '{}'\nhint: a line has one host, then slots=N or max_slots=N", key));
    }
    if (i + 2 >= words.size() || words[i + 1] != "=") {
      throw std::invalid_argument(fmt::format("'{0}' has no value\nhint: write {0}=8", key));
    }
    std::optional<int>& target = is_most ? most : slots;
    if (target) throw std::invalid_argument(fmt::format("'{}' is given twice", key));
    target = read_count(key, words[i + 2]);
  }
  if (slots && most && *slots > *most) {
    throw std::invalid_argument(fmt::format("slots {} is more than max_slots {}", *slots, *most));
  }
  entry.slots = slots ? slots : most;
  return entry;
}

std::string read_text(const std::filesystem::path& file) {
  try {
    std::string text = read_file(file == "-" ? "/dev/stdin" : file);
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    if (text.find('\0') != text.npos)
      throw std::invalid_argument(fmt::format("hostfile {} is not a text file", file.string()));
    return text;
  } catch (const std::system_error& fault) {
    throw std::invalid_argument(fmt::format("hostfile {}", fault.what()));
  }
}

}  // namespace

std::vector<HostfileEntry> read_hostfile(const std::filesystem::path& file) {
  std::istringstream text(read_text(file));
  std::vector<HostfileEntry> entries;
  std::unordered_map<std::string, int> line_of;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    try {
      entries.push_back(read_entry(words));
      const std::string name = to_string(entries.back().host);
      const auto [first, is_new] = line_of.try_emplace(name, number);
      if (!is_new) {
        throw std::invalid_argument(
            fmt::format("host '{}' is named twice, first in line {}", name, first->second));
      }
    } catch (const std::invalid_argument& fault) {
      throw std::invalid_argument(fmt::format("{}:{}: {}", file.string(), number, fault.what()));
    }
  }
  if (entries.empty()) {
    throw std::invalid_argument(
        fmt::format("{}:{}: no host is named", file.string(), std::max(number, 1)));
  }
  return entries;
}

}  // namespace dtool::ssh
