// SPDX-License-Identifier: MIT
// How many GPUs a list such as CUDA_VISIBLE_DEVICES shows to a process. Both programs and
// dtool-host count with it, so it is a header that needs nothing but the standard library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dtool::killfiles {

/// A machine's GPUs.
struct Gpus {
  int devices = 0;
  std::vector<std::string> uuids;  ///< `GPU-...` each; empty if the driver does not tell
  std::vector<bool> is_cut;  ///< whether each device is cut into MIG instances; empty: none is
};

/// The list's entries without the blanks around them.
inline std::vector<std::string> entries_of(const std::string& list) {
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

/// The number of the GPU that an entry names: by its number (digits at the beginning count,
/// whatever follows, as with strtol) or by its UUID, which may be cut short. Nothing if there is
/// none. A UUID counts as the next GPU's where the driver does not tell UUIDs.
inline std::optional<int> device_of(const Gpus& machine, const std::string& entry, int next = 0) {
  if (entry.starts_with("GPU-")) {
    const auto& uuids = machine.uuids;
    if (uuids.empty()) return next < machine.devices ? std::optional(next) : std::nullopt;
    const auto is_meant = [&](const std::string& uuid) { return uuid.starts_with(entry); };
    const auto match = std::find_if(uuids.begin(), uuids.end(), is_meant);
    return match == uuids.end() ? std::nullopt
                                : std::optional(static_cast<int>(match - uuids.begin()));
  }
  char* end = nullptr;
  const long number = std::strtol(entry.c_str(), &end, 10);
  const bool is_one = end != entry.c_str() && number >= 0 && number < machine.devices;
  return is_one ? std::optional(static_cast<int>(number)) : std::nullopt;
}

/// How many of them CUDA shows to a process with this CUDA_VISIBLE_DEVICES. The list names GPUs by
/// number, by UUID (may be cut short), or a MIG instance. CUDA shows only one instance, and no
/// whole GPU beside it. The first invalid entry ends the list; a repeated entry empties it.
/// HIP_VISIBLE_DEVICES means the same.
/// https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars and
/// https://docs.nvidia.com/datacenter/tesla/mig-user-guide/#cuda-visible-devices; PyTorch
/// interprets it the same way (torch/cuda/__init__.py, _parse_visible_devices).
inline int count_listed(const Gpus& machine, const std::string& list) {
  const auto entries = entries_of(list);
  if (entries.empty()) return 0;
  if (entries[0].starts_with("MIG-")) return std::min(1, machine.devices);
  const bool is_by_uuid = entries[0].starts_with("GPU-");
  std::set<int> seen;
  std::set<std::string> words;  // the entries so far: UUIDs that the driver does not tell
  bool is_any_cut = false;
  for (const std::string& entry : entries) {
    if (entry.starts_with("GPU-") != is_by_uuid) break;
    if (is_by_uuid && machine.uuids.empty() && words.contains(entry)) return 0;
    const auto device = device_of(machine, entry, static_cast<int>(seen.size()));
    if (!device) break;
    if (!seen.insert(*device).second) return 0;
    words.insert(entry);
    const auto place = static_cast<std::size_t>(*device);
    is_any_cut = is_any_cut || (place < machine.is_cut.size() && machine.is_cut[place]);
  }
  return is_any_cut ? 1 : static_cast<int>(seen.size());
}

}  // namespace dtool::killfiles
