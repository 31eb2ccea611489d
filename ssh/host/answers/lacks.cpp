// SPDX-License-Identifier: MIT
#include "ssh/host/answers/lacks.h"

#include <sys/file.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {
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
