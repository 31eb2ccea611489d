// SPDX-License-Identifier: MIT
#include "cli/run/host/survey.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/run/host/lacks.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/words.h"

namespace dtool::host {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The field of this user's line in /etc/passwd, counted from 0; empty if there is no line.
std::string passwd_field(std::size_t wanted) {
  const std::string uid = std::to_string(::getuid());
  const std::string text = read_file("/etc/passwd").value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = cut_line(rest);
    std::vector<std::string> fields;
    for (;;) {
      const std::size_t end = line.find(':');
      fields.emplace_back(line.substr(0, end));
      if (end == line.npos) break;
      line.remove_prefix(end + 1);
    }
    if (fields.size() > wanted && fields.size() > 2 && fields[2] == uid) return fields[wanted];
  }
  return {};
}

std::string system_name() {
  const std::string name = os_release("PRETTY_NAME");
  utsname kernel{};
  ::uname(&kernel);
  return (name.empty() ? std::string(kernel.sysname) : name) + ", " + kernel.machine;
}

/// The cores that the control groups of this process leave it (cgroup v2), rounded down; nothing if
/// they set no limit. https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
std::optional<std::int64_t> quota_of_cores() {
  const std::string groups = read_file("/proc/self/cgroup").value_or("");
  const std::size_t at = groups.find("0::/");
  if (at == groups.npos) return std::nullopt;
  std::optional<std::int64_t> least;
  std::filesystem::path group = groups.substr(at + 3, groups.find('\n', at) - at - 3);
  for (;; group = group.parent_path()) {
    const std::string text = read_file("/sys/fs/cgroup" + group.string() + "/cpu.max").value_or("");
    std::string_view rest = text;
    const auto quota = parse_number<std::int64_t>(cut_word(rest));  // or `max`
    const auto period = parse_number<std::int64_t>(cut_word(rest));
    if (quota && period && *period > 0) {
      const std::int64_t cores = std::max<std::int64_t>(1, *quota / *period);
      least = std::min(least.value_or(cores), cores);
    }
    if (group == "/") return least;
  }
}

std::int64_t count_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const std::int64_t cores = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                                 ? CPU_COUNT(&allowed)
                                 : ::sysconf(_SC_NPROCESSORS_ONLN);
  return std::min(cores, quota_of_cores().value_or(cores));
}

std::int64_t free_bytes_of(const std::string& folder) {
  struct statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return -1;
  return static_cast<std::int64_t>(free_bytes(disk));
}

/// A line of /proc/meminfo, in bytes; 0 if it is missing.
std::int64_t memory_of(std::string_view wanted) {
  const std::string text = read_file("/proc/meminfo").value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = cut_line(rest);
    if (cut_word(line) == wanted)
      return parse_number<std::int64_t>(cut_word(line)).value_or(0) * 1024;
  }
  return 0;
}

/// `tmux 3.3a` of a tmux that takes screen's place.
std::string find_tmux() {
  if (is_program("screen") || !is_program("tmux")) return {};
  const ChildResult told = run_program({"tmux", "-V"}, std::chrono::seconds(20));
  return told.out.substr(0, told.out.find('\n'));
}

}  // namespace

std::string user_name() {
  const std::string name = variable("USER");
  if (!name.empty()) return name;
  const std::string known = passwd_field(0);
  return known.empty() ? std::to_string(::getuid()) : known;
}

Hardware find_hardware(const HostGpus& gpus) {
  Hardware hardware;
  hardware.cores = count_cores();
  hardware.memory = memory_of("MemTotal:");
  gpus.tell(hardware);
  return hardware;
}

Survey survey_host(const std::string& code) {
  Survey survey;
  survey.user = user_name();
  survey.shell = passwd_field(6);
  if (survey.shell.empty()) survey.shell = variable("SHELL");
  survey.system = system_name();
  survey.bash = version_of("bash");
  survey.screen = version_of("screen");
  survey.tmux = find_tmux();
  survey.rsync = version_of("rsync");
  survey.free_memory = memory_of("MemAvailable:");
  survey.free_code = free_bytes_of(code);
  survey.free_home = free_bytes_of(expand_home("~"));
  return survey;
}

}  // namespace dtool::host
