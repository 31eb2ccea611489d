// SPDX-License-Identifier: MIT
#include "ssh/host/answers/survey.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/versions.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Of this user's line in /etc/passwd.
std::string own_passwd_field(std::size_t wanted) {
  return passwd_field(read_file("/etc/passwd").value_or(""), ::getuid(), wanted);
}

std::string system_name() {
  const std::string name = os_release("PRETTY_NAME");
  utsname kernel{};
  ::uname(&kernel);
  return (name.empty() ? std::string(kernel.sysname) : name) + ", " + kernel.machine;
}

/// The cores that a control group leaves its processes, rounded down; nothing if it sets no limit.
/// https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files (v2), and
/// https://docs.kernel.org/scheduler/sched-bwc.html (v1)
std::optional<std::int64_t> quota_of_group(const std::string& folder) {
  const std::string text = read_file(folder + "/cpu.max")
                               .value_or(read_line(folder + "/cpu.cfs_quota_us") + " " +
                                         read_line(folder + "/cpu.cfs_period_us"));
  std::string_view rest = text;
  // The word is a number, or `max`, or -1.
  const auto quota = parse_number<std::int64_t>(cut_word(rest));
  const auto period = parse_number<std::int64_t>(cut_word(rest));
  if (!quota || *quota <= 0 || !period || *period <= 0) return std::nullopt;
  return std::max<std::int64_t>(1, *quota / *period);
}

std::int64_t count_cores() {
  cpu_set_t allowed;
  const std::int64_t cores = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                                 ? CPU_COUNT(&allowed)
                                 : ::sysconf(_SC_NPROCESSORS_ONLN);
  const auto quota = quota_of_cores(read_file("/proc/self/cgroup").value_or(""), "/sys/fs/cgroup");
  return std::min(cores, quota.value_or(cores));
}

std::int64_t free_bytes_of(const std::string& folder) {
  struct statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return -1;
  return static_cast<std::int64_t>(free_bytes(disk));
}

std::int64_t own_memory(std::string_view which) {
  return memory_of(read_file("/proc/meminfo").value_or(""), which);
}

std::string loopback_of_own_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return loopback_of(read_file("/etc/hosts").value_or(""), name.data());
}

/// `tmux 3.3a` of a tmux that takes screen's place.
std::string find_tmux() {
  if (is_program("screen") || !is_program("tmux")) return {};
  const ChildResult told = run_program({"tmux", "-V"}, std::chrono::seconds(20));
  return told.out.substr(0, told.out.find('\n'));
}

}  // namespace

std::string passwd_field(std::string_view passwd, uid_t user, std::size_t wanted) {
  const std::string uid = std::to_string(user);
  while (!passwd.empty()) {
    std::string_view line = cut_line(passwd);
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

std::optional<std::int64_t> quota_of_cores(std::string_view groups, const std::string& folder) {
  std::optional<std::int64_t> least;
  while (!groups.empty()) {
    std::string_view line = cut_line(groups);  // `0::/a/group`, or `5:cpu,cpuacct:/a/group`
    line.remove_prefix(std::min(line.find(':') + 1, line.size()));
    const std::string kinds = "," + std::string(line.substr(0, line.find(':'))) + ",";
    line.remove_prefix(std::min(line.find(':') + 1, line.size()));
    const bool is_second = kinds == ",,";
    if ((!is_second && kinds.find(",cpu,") == kinds.npos) || !line.starts_with('/')) continue;
    const std::string top = is_second ? folder : folder + "/cpu";
    for (std::filesystem::path group = line;; group = group.parent_path()) {
      const auto cores = quota_of_group(top + group.string());
      if (cores) least = std::min(least.value_or(*cores), *cores);
      if (group == "/") break;
    }
  }
  return least;
}

std::int64_t memory_of(std::string_view meminfo, std::string_view wanted) {
  while (!meminfo.empty()) {
    std::string_view line = cut_line(meminfo);
    if (cut_word(line) == wanted)
      return parse_number<std::int64_t>(cut_word(line)).value_or(0) * 1024;
  }
  return 0;
}

std::string loopback_of(std::string_view hosts, std::string_view name) {
  while (!hosts.empty()) {
    std::string_view line = cut_line(hosts);
    line = line.substr(0, line.find('#'));
    const std::string_view address = cut_word(line);
    for (std::string_view word = cut_word(line); !word.empty(); word = cut_word(line)) {
      if (word != name) continue;
      return address.starts_with("127.") ? std::string(address) : "";
    }
  }
  return {};
}

std::string user_name() {
  const std::string name = variable("USER");
  if (!name.empty()) return name;
  const std::string known = own_passwd_field(0);
  return known.empty() ? std::to_string(::getuid()) : known;
}

Hardware find_hardware(const HostGpus& gpus) {
  Hardware hardware;
  hardware.cores = count_cores();
  hardware.memory = own_memory("MemTotal:");
  gpus.tell(hardware);
  return hardware;
}

Survey survey_host(const std::string& code) {
  Survey survey;
  survey.user = user_name();
  survey.shell = own_passwd_field(6);
  if (survey.shell.empty()) survey.shell = variable("SHELL");
  survey.system = system_name();
  survey.bash = version_of("bash");
  survey.screen = version_of("screen");
  survey.tmux = find_tmux();
  survey.rsync = version_of("rsync");
  survey.own_name = loopback_of_own_name();
  survey.free_memory = own_memory("MemAvailable:");
  survey.free_code = free_bytes_of(code);
  survey.free_home = free_bytes_of(expand_home("~"));
  return survey;
}

namespace {

bool names(const std::string& script, const std::string& hash) {
  return read_file(script).value_or("").find(hash) != std::string::npos;
}

/// Of a run's folder: whether a machine was started here and has not ended. Before any start a
/// process may hold a port, and after the end the session's last may still be there.
bool goes_on(const std::string& run) {
  const std::vector<std::string> names = list_folder(run);
  return std::ranges::any_of(names, [&run](const std::string& name) {
    const std::string machine = run + "/" + name;
    const bool is_one = name.starts_with("machine") && is_folder(machine);  // not the run's tree
    return is_one && !exists(machine + "/exit_code") && !exists(machine + "/killed");
  });
}

}  // namespace

std::string run_that_uses(const std::string& hash) {
  const std::string runs = expand_home("~/.dtool/runs");
  std::optional<std::set<std::string>> marked;
  for (const std::string& run : list_folder(runs)) {
    bool is_named = false;
    for (const std::string& name : list_folder(runs + "/" + run)) {
      const std::string machine = runs + "/" + run + "/" + name;
      // Other entries lie beside the machines' folders: the run's tree.
      if (!name.starts_with("machine") || !is_folder(machine)) continue;
      is_named = is_named || names(machine + "/script", hash) || names(machine + "/rank", hash);
    }
    if (!is_named) continue;
    if (!marked) marked = marked_runs();
    if (goes_on(runs + "/" + run) || marked->contains(run)) return run;
  }
  return {};
}

void use_version(const std::string& folder) {
  for (const std::string& old : mark_used(folder)) {
    const std::string name = old.substr(old.rfind('/') + 1);
    if (run_that_uses(name).empty()) Inside(folder_of(old)).remove_folder(name);
  }
}

std::vector<std::string> running_runs() {
  std::set<std::string> runs = marked_runs();
  std::erase_if(runs, [](const std::string& run) {
    return run.find('/') == run.npos && !goes_on(expand_home("~/.dtool/runs/" + run));
  });
  return {runs.begin(), runs.end()};
}

namespace {

using std::chrono::seconds;

constexpr seconds kForAWord{
    20};  // the time for a program that only has to say a word, such as its version
/// By the scripts that ready an environment, and by those of launchers.
constexpr std::array kNeededByScripts = {"awk", "grep", "head", "mktemp", "sed", "tail", "timeout"};

/// The version of a bash older than 4.4.
std::string find_old_bash() {
  const ChildResult told = run_program(
      {"bash", "-c", "echo \"$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1])) $BASH_VERSION\""},
      kForAWord);
  constexpr int kOldest = 404;
  std::string_view rest = told.out;
  std::string_view line = cut_line(rest);
  const auto number = parse_number<int>(cut_word(line));
  if (!told.ok() || (number && *number >= kOldest)) return {};
  return std::string(cut_word(line));
}

/// It says so, for one, of a folder for its sockets that it cannot make.
std::string find_screen_fault() {
  const ChildResult told = run_program({"screen", "-ls"}, kForAWord);
  const std::string said = told.out + told.err;
  if (said.find("ocket") != said.npos) return {};
  std::string last = "it says nothing";
  for (std::string_view rest = said; !rest.empty();) {
    const std::string_view line = cut_line(rest);
    if (!line.empty()) last = line;
  }
  return last;
}

/// Where the file system of ~/.dtool, or of the home folder that it would be in, cannot lock files,
/// one launcher could not keep out of another's way. Nothing is left behind.
std::string find_lock_fault() {
  std::string folder = expand_home("~/.dtool");
  if (!is_folder(folder)) folder = expand_home("~");
  const std::string path = folder + "/.lock_trial." + std::to_string(::getpid());
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open()) return {};  // a home that cannot be written is told as that
  // A process of another host with the same home folder may have the same pid, and hold the lock.
  const bool is_locked = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno == EWOULDBLOCK;
  const std::string why = is_locked ? "" : with_reason(folder);
  ::unlink(path.c_str());
  return why;
}

}  // namespace

std::string value_of_release(std::string_view release, std::string_view name) {
  for (auto& [key, value] : read_pairs(release)) {
    if (key != name) continue;
    std::erase(value, '"');
    return value;
  }
  return {};
}

std::string os_release(std::string_view name) {
  return value_of_release(read_file("/etc/os-release").value_or(""), name);
}

std::string find_package_manager(std::string_view kinds) {
  struct Manager {
    std::string_view name;
    /// The systems' names as ID and ID_LIKE of /etc/os-release have them.
    std::string_view systems;
  };
  static constexpr std::array kManagers = {
      Manager{"apt-get", " debian ubuntu "},
      Manager{"dnf", " fedora rhel centos "},
      Manager{"yum", " fedora rhel centos "},
      Manager{"zypper", " suse opensuse sles "},
      Manager{"apk", " alpine "},
      Manager{"pacman", " arch "},
  };
  while (!kinds.empty()) {
    const std::string kind = " " + std::string(cut_word(kinds)) + " ";
    for (const Manager& each : kManagers) {
      const bool is_its = each.systems.find(kind) != each.systems.npos;
      if (is_its && is_program(std::string(each.name))) return std::string(each.name);
    }
  }
  for (const Manager& each : kManagers) {
    if (is_program(std::string(each.name))) return std::string(each.name);
  }
  return {};
}

std::string version_of(const std::string& program) {
  if (!is_program(program)) return {};
  const ChildResult told = run_program({program, "--version"}, kForAWord);
  const std::string said = told.out + told.err;
  constexpr std::string_view kDigits = "0123456789";
  for (std::size_t at = said.find_first_of(kDigits); at != said.npos;
       at = said.find_first_of(kDigits, at)) {
    const std::size_t end = std::min(said.find_first_not_of("0123456789.", at), said.size());
    const std::string_view number = std::string_view(said).substr(at, end - at);
    const std::size_t point = number.find('.');
    if (point != number.npos && point + 1 < number.size() && number[point + 1] != '.')
      return std::string(number);
    at = end;
  }
  return {};
}

ProgramLacks find_lacks(const Wants& wants, Screen screen, Scripts scripts) {
  ProgramLacks lacks;
  if (!is_program("bash")) lacks.programs.emplace_back("bash");
  for (const char* program : kNeededByScripts) {
    if (scripts == Scripts::some && !is_program(program)) lacks.programs.emplace_back(program);
  }
  const bool has_screen = is_program("screen");
  lacks.has_terminal = !wants.session || has_screen || is_program("tmux");
  if (is_program("bash")) lacks.old_bash = find_old_bash();
  if (wants.session && has_screen && screen == Screen::tried)
    lacks.screen_fault = find_screen_fault();
  lacks.lock_fault = find_lock_fault();
  const bool lacks_any = !lacks.programs.empty() || !lacks.old_bash.empty() ||
                         !lacks.has_terminal || !is_program("rsync");
  if (lacks_any)
    lacks.package_manager = find_package_manager(os_release("ID") + " " + os_release("ID_LIKE"));
  return lacks;
}

}  // namespace dtool::host
