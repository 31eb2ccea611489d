// https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars; PyTorch interprets it
// the same way (torch/cuda/__init__.py, _parse_visible_devices).
#include "trainer/launch/visible_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

namespace fs = std::filesystem;

/// /dev/nvidia0, /dev/nvidia3, ...: a container may have any of them.
int count_devices(const fs::path& root) {
  int devices = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "dev", none)) {
    const std::string name = entry.path().filename();
    const bool is_gpu = name.starts_with("nvidia") && name.size() > 6 &&
                        name.find_first_not_of("0123456789", 6) == name.npos;
    if (is_gpu) ++devices;
  }
  return devices;
}

/// Empty if the driver does not tell.
std::vector<std::string> read_uuids(const fs::path& root) {
  std::vector<std::string> uuids;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", none)) {
    std::ifstream lines(entry.path() / "information");
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find("GPU-");
      if (line.starts_with("GPU UUID") && at != line.npos) uuids.push_back(line.substr(at));
    }
  }
  return uuids;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> entries;
  std::istringstream parts(list);
  for (std::string entry; std::getline(parts, entry, ',');) {
    const auto begin = entry.find_first_not_of(" \t");
    const auto end = entry.find_last_not_of(" \t");
    entries.push_back(begin == entry.npos ? "" : entry.substr(begin, end - begin + 1));
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

int count_gpus(const Environment& environment, const fs::path& root) {
  const int devices = count_devices(root);
  const auto visible = environment("CUDA_VISIBLE_DEVICES");
  if (!visible) return devices;
  const auto entries = split(*visible);
  if (entries.empty()) return 0;
  if (entries[0].starts_with("MIG-")) return std::min(1, devices);
  if (entries[0].starts_with("GPU-")) return count_uuids(entries, read_uuids(root), devices);
  return count_numbers(entries, devices);
}

void check_gpus(Backend wanted, int workers, int gpus) {
  if (wanted == Backend::gloo || gpus == 0 || workers <= gpus) return;
  throw UsageError(
      fmt::format("{} processes need a GPU each, and this machine shows {}", workers, gpus),
      "lower --nproc_per_node, look at CUDA_VISIBLE_DEVICES, or set distributed.backend = "
      "\"gloo\"");
}

}  // namespace dtool::trainer
