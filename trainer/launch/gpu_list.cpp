// SPDX-License-Identifier: MIT
#include "trainer/launch/gpu_list.h"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace dtool::trainer {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string entry = list.substr(at, comma - at);
    const auto begin = entry.find_first_not_of(" \t");
    const auto end = entry.find_last_not_of(" \t");
    entries.push_back(begin == entry.npos ? "" : entry.substr(begin, end - begin + 1));
    at = comma + 1;
  }
  return entries;
}

/// Digits at the beginning count, whatever follows, as with strtol; -1 without any.
long number_of(const std::string& entry) {
  char* end = nullptr;
  const long number = std::strtol(entry.c_str(), &end, 10);
  return end == entry.c_str() ? -1 : number;
}

int count_numbers(const std::vector<std::string>& entries, int devices) {
  std::set<long> seen;
  for (const std::string& entry : entries) {
    const long number = number_of(entry);
    if (number < 0 || number >= devices) break;
    if (!seen.insert(number).second) return 0;
  }
  return static_cast<int>(seen.size());
}

int count_uuids(const std::vector<std::string>& entries, const std::vector<std::string>& uuids,
                int devices) {
  std::set<std::string> seen;
  for (const std::string& entry : entries) {
    if (!entry.starts_with("GPU-")) break;
    const auto is_meant = [&](const std::string& uuid) { return uuid.starts_with(entry); };
    const auto match = std::find_if(uuids.begin(), uuids.end(), is_meant);
    if (!uuids.empty() && match == uuids.end()) break;
    if (!seen.insert(uuids.empty() ? entry : *match).second) return 0;
  }
  return std::min(static_cast<int>(seen.size()), devices);
}

}  // namespace

int count_listed(const Gpus& machine, const std::string& list) {
  const auto entries = split(list);
  if (entries.empty()) return 0;
  if (entries[0].starts_with("MIG-")) return std::min(1, machine.devices);
  if (entries[0].starts_with("GPU-")) return count_uuids(entries, machine.uuids, machine.devices);
  return count_numbers(entries, machine.devices);
}

}  // namespace dtool::trainer
