// https://docs.kernel.org/admin-guide/cgroup-v2.html, `memory.events`; cgroup-v1/memory.html,
// `memory.oom_control`.
#include "trainer/launch/out_of_memory.h"

#include <fstream>
#include <optional>
#include <sstream>

namespace dtool::trainer {
namespace {

namespace fs = std::filesystem;

/// The number behind `oom_kill` in a file of lines `name number`.
std::optional<std::int64_t> count_in(const fs::path& file) {
  std::ifstream lines(file);
  std::string name;
  std::int64_t number = 0;
  while (lines >> name >> number) {
    if (name == "oom_kill") return number;
  }
  return std::nullopt;
}

/// Lines such as `4:memory:/a/b`, and `0::/a/b` for version 2.
std::optional<std::int64_t> count_in_cgroup(const fs::path& root) {
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string number, controllers, path;
    std::getline(parts, number, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, path);
    if (path.empty()) continue;
    const auto inside = fs::path(path).relative_path();
    if (controllers == "memory") {
      const auto count = count_in(root / "sys/fs/cgroup/memory" / inside / "memory.oom_control");
      if (count) return count;
    } else if (controllers.empty()) {
      const auto count = count_in(root / "sys/fs/cgroup" / inside / "memory.events");
      if (count) return count;
    }
  }
  return std::nullopt;
}

}  // namespace

std::int64_t count_out_of_memory_kills(const fs::path& root) {
  if (const auto count = count_in_cgroup(root)) return *count;
  return count_in(root / "proc/vmstat").value_or(0);
}

}  // namespace dtool::trainer
