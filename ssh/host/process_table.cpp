// SPDX-License-Identifier: MIT
#include "ssh/host/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "killfiles/channel/sha256.h"
#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

constexpr std::string_view kVariable = "DTOOL_RUN_ID=";

std::string folder_of_process(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

template <typename Number>
bool read_number(std::string_view word, Number& number) {
  const auto parsed = parse_number<Number>(word);
  if (parsed) number = *parsed;
  return parsed.has_value();
}

std::optional<std::string> read_environment(const std::string& folder) {
  constexpr std::size_t kMost = 16U << 20U;
  return read_file(folder + "/environ", kMost);
}

/// Where the main thread alone has ended, /proc/PID/environ is empty, cannot be opened or is root's
/// (by the kernel's version), and the other threads' tells. Leaves errno as it was.
std::optional<std::string> read_environment_of_threads(pid_t pid) {
  const int error = errno;
  const auto process = find_process(pid);
  errno = error;
  if (!process || process->state != 'Z' || process->is_dead()) return std::nullopt;
  const std::string threads = folder_of_process(pid) + "/task";
  for (const std::string& each : list_folder(threads)) {
    auto environment = read_environment(threads + "/" + each);
    if (environment && !environment->empty()) return environment;
  }
  errno = error;
  return std::nullopt;
}

[[noreturn]] void cannot_look(const std::string& why) {
  throw std::runtime_error("the host's processes cannot be looked at: " + why);
}

}  // namespace

std::optional<Process> parse_stat(std::string_view text) {
  // The name stands in parentheses and may itself hold parentheses, blanks and line ends.
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");
  if (open == text.npos || close == text.npos || close < open) return std::nullopt;
  Process process;
  process.name = text.substr(open + 2, close - open - 2);
  if (!read_number(text.substr(0, open), process.pid)) return std::nullopt;
  std::string_view rest = text.substr(close + 2);
  const std::string_view state = cut_word(rest);
  if (state.size() != 1) return std::nullopt;
  process.state = state[0];
  std::uint64_t user_ticks{};
  std::uint64_t system_ticks{};
  constexpr std::size_t kFirstField = 4, kLastField = 24;
  std::array<std::string_view, kLastField + 1> field;  // their numbers are those of proc(5)
  for (std::size_t i = kFirstField; i <= kLastField; ++i) field[i] = cut_word(rest);
  const bool is_whole =
      read_number(field[4], process.parent) && read_number(field[6], process.session) &&
      read_number(field[14], user_ticks) && read_number(field[15], system_ticks) &&
      read_number(field[20], process.threads) && read_number(field[22], process.start) &&
      read_number(field[24], process.resident_pages);
  if (!is_whole) return std::nullopt;
  process.cpu_ticks = user_ticks + system_ticks;
  return process;
}

std::optional<Process> find_process(pid_t pid) {
  const auto text = read_file(folder_of_process(pid) + "/stat", 4096);
  return text ? parse_stat(*text) : std::nullopt;
}

std::optional<Process> find_process(pid_t pid, std::uint64_t start) {
  auto process = find_process(pid);
  if (process && process->start != start) process.reset();
  return process;
}

std::vector<pid_t> list_pids() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) cannot_look(std::strerror(errno));
  std::vector<pid_t> pids;
  bool sees_itself = false;
  for (errno = 0; const dirent* entry = ::readdir(folder.get()); errno = 0) {
    pid_t pid = 0;
    if (!read_number(std::string_view(entry->d_name), pid)) continue;
    sees_itself = sees_itself || pid == ::getpid();
    pids.push_back(pid);
  }
  if (errno != 0) cannot_look(std::strerror(errno));
  if (!sees_itself) cannot_look("/proc does not show dtool-host itself");
  return pids;
}

std::vector<Process> read_processes() {
  std::vector<Process> processes;
  for (const pid_t pid : list_pids()) {
    errno = 0;
    auto process = find_process(pid);
    if (process) {
      processes.push_back(*std::move(process));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      cannot_look(std::strerror(errno));
    } else if (pid == ::getpid()) {
      cannot_look("/proc/PID/stat is not as the kernel documents it");
    }
  }
  return processes;
}

RunMark read_run_mark(pid_t pid) {
  errno = 0;
  auto environment = read_environment(folder_of_process(pid));
  const bool has_none = environment ? environment->empty() : errno == ESRCH || errno == EACCES;
  if (auto threads = has_none ? read_environment_of_threads(pid) : std::nullopt)
    environment = std::move(threads);
  if (!environment) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) cannot_look(std::strerror(errno));
    return {errno == EACCES || errno == EPERM ? RunMark::Look::hidden : RunMark::Look::gone};
  }
  RunMark mark{RunMark::Look::seen};
  for (std::string_view rest = *environment; !rest.empty();) {
    const std::string_view each = cut(rest, '\0');
    const bool has_value = each.starts_with(kVariable) && each.size() > kVariable.size();
    if (has_value) mark.run_id = each.substr(kVariable.size());
    if (mark.run_id) break;
  }
  return mark;
}

std::optional<uid_t> user_of(pid_t pid) {
  errno = 0;
  const auto text = read_file(folder_of_process(pid) + "/status", 65536);
  if (!text) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) cannot_look(std::strerror(errno));
    return std::nullopt;
  }
  const std::size_t at = text->find("\nUid:");
  if (at == text->npos) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(at + 5);
  return parse_number<uid_t>(cut_word(rest));
}

std::set<std::string> marked_runs() {
  std::set<std::string> runs;
  for (const pid_t pid : list_pids()) {
    const RunMark mark = read_run_mark(pid);
    if (mark.run_id && !mark.run_id->empty() && user_of(pid) == ::geteuid())
      runs.insert(*mark.run_id);
  }
  return runs;
}

std::string command_of(pid_t pid, std::size_t most) {
  std::string text = read_file(folder_of_process(pid) + "/cmdline", 4096).value_or("");
  for (char& each : text) {
    if (each == '\0' || each == '\n' || each == '\t') each = ' ';
  }
  std::erase_if(text, [](char each) { return each < ' ' || each == '\x7f'; });
  if (text.size() > most) text.resize(most);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::uint64_t ticks_per_second() {
  return static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

double seconds_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::string boot_id() {
  return read_line("/proc/sys/kernel/random/boot_id");
}

std::string current_boot() {
  std::string boot = boot_id();
  const auto init = boot.empty() ? find_process(1) : std::nullopt;
  return init ? std::string(kBootOfInit) + std::to_string(init->start) : boot;
}

namespace {

constexpr std::size_t kLongest = 64;

/// systemd's machine-id(5) asks not to tell it to others as it is, so this is a hash of it.
std::string machine_id() {
  const std::string id = read_line("/etc/machine-id");
  const bool is_one =
      id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_one ? to_hex(sha256("dtool " + id)).substr(0, 32) : "-";
}

std::string host_name() {
  std::string name = read_line("/proc/sys/kernel/hostname");
  for (char& each : name) {
    const bool is_plain = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                          (each >= '0' && each <= '9') || each == '.' || each == '_' || each == '-';
    if (!is_plain) each = '_';
  }
  return name.empty() ? "-" : name.substr(0, kLongest);
}

std::string process_namespace() {
  std::array<char, 64> link{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  std::string digits;
  for (ssize_t i = 0; i < size; ++i) {
    const char each = link.at(static_cast<std::size_t>(i));
    if (each >= '0' && each <= '9') digits += each;
  }
  return digits.empty() ? "-" : digits;
}

}  // namespace

std::string identify_host() {
  const std::string boot = boot_id();
  return machine_id() + " " + host_name() + " " + (boot.empty() ? "-" : boot) + " " +
         process_namespace();
}

}  // namespace dtool::host
