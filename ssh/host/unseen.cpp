// SPDX-License-Identifier: MIT
// Finds processes that may be the run's although nothing proves it.
#include "ssh/host/kill.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "ssh/host/child.h"
#include "ssh/host/members.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::size_t kNamed = 3;  // the most processes of one server that are named
constexpr std::size_t kLongestCommand = 60;

using Table = std::map<pid_t, const Process*>;

bool is_mine(pid_t pid) {
  return user_of(pid) == ::geteuid();
}

/// Each container of docker has one above it, of root. A user who may not speak to docker has no
/// container.
bool is_container(const Process& process) {
  if (!process.name.starts_with("containerd-shim")) return false;
  if (user_of(process.pid) != 0 && !is_mine(process.pid)) return false;  // only its name is so
  const char* named = std::getenv("DOCKER_HOST");
  std::string_view socket = named == nullptr ? "unix:///var/run/docker.sock" : named;
  constexpr std::string_view kUnix = "unix://";
  if (socket.starts_with(kUnix)) socket.remove_prefix(kUnix.size());
  return ::access(std::string(socket).c_str(), W_OK) == 0;
}

/// It is above each container of podman. The processes inside may have other users' numbers.
bool is_conmon(const Process& process) {
  return process.name == "conmon";
}

bool is_server(const Process& process) {
  return process.pid != 1 &&
         (process.name == "tmux: server" || process.name == "screen" || process.name == "systemd" ||
          is_conmon(process) || is_container(process));
}

/// They keep keys or passwords, so the kernel hides them from other programs of their user.
bool is_known_to_hide(const Process& process) {
  constexpr std::array kNames = {"sshd",      "sshd-session", "(sd-pam)", "systemd",
                                 "ssh-agent", "gpg-agent",    "su",       "sudo"};
  return std::ranges::find(kNames, process.name) != kNames.end();
}

/// The process and those that it descends from, the nearest first. A table that was read piecemeal
/// may hold a circle.
std::vector<pid_t> line_of(const Table& table, pid_t pid) {
  std::vector<pid_t> line;
  std::set<pid_t> met;
  for (auto at = table.find(pid); at != table.end() && met.insert(at->first).second;
       at = table.find(at->second->parent))
    line.push_back(at->first);
  return line;
}

/// A process that a server began, or one below it.
struct Handed {
  const Process* server;
  pid_t top;  ///< the server's child that the process descends from, or is
};

std::optional<Handed> find_server(const Table& table, pid_t pid) {
  std::optional<pid_t> below;
  for (const pid_t each : line_of(table, pid)) {
    const Process* process = table.at(each);
    if (below && is_server(*process)) return Handed{process, *below};
    below = each;
  }
  return std::nullopt;
}

/// Whether its folder, standard output or standard error is one of these places, or below it.
bool is_at(const std::vector<std::string>& places, pid_t pid) {
  for (const char* link : {"/cwd", "/fd/1", "/fd/2"}) {
    std::error_code hidden;
    const std::string place =
        std::filesystem::read_symlink("/proc/" + std::to_string(pid) + link, hidden);
    const auto has = [&place](const std::string& each) {
      return !each.empty() && place.starts_with(each) &&
             (place.size() == each.size() || place[each.size()] == '/');
    };
    if (std::ranges::any_of(places, has)) return true;
  }
  return false;
}

std::string count_and_name(const std::vector<pid_t>& pids, const std::string& what_they_did) {
  std::string text = std::to_string(pids.size()) +
                     (pids.size() == 1 ? " process " : " processes ") + what_they_did + ": ";
  for (std::size_t i = 0; i < std::min(pids.size(), kNamed); ++i)
    text +=
        (i == 0 ? "" : ", ") + std::to_string(pids[i]) + " " + command_of(pids[i], kLongestCommand);
  return text + (pids.size() > kNamed ? ", …" : "");
}

std::string describe(const Process& server, const std::vector<pid_t>& pids) {
  const std::string_view name = server.name;
  return std::string(name.substr(0, name.find(':'))) + " (pid " + std::to_string(server.pid) +
         ") has " + count_and_name(pids, "that began after the run");
}

/// Jobs of `at` that have not begun: each has the environment in which it was asked for.
void add_jobs_of_at(const std::string& run_id, std::vector<std::string>& unseen) {
  constexpr std::chrono::seconds kPatience{2};
  constexpr std::size_t kMost = 50;
  const std::string listed = try_program({"atq"}, kPatience).out;
  std::size_t count = 0;
  for (std::string_view rest = listed; !rest.empty() && count < kMost; ++count) {
    std::string_view line = cut_line(rest);
    const std::string job(cut_word(line));
    const std::string text = "\n" + try_program({"at", "-c", job}, kPatience).out;
    if (text.find("\nDTOOL_RUN_ID=" + run_id + ";") != text.npos)
      unseen.push_back("at has job " + job + " of the run, which has not begun (atrm " + job + ")");
  }
}

/// A process of the user that has just begun, whose parent is gone, and that is not among those
/// met before; it is added to them.
std::optional<pid_t> meet_young_orphan(std::set<pid_t>& met) {
  constexpr double kYoung = 0.3;  // seconds
  std::optional<pid_t> found;
  const double now = seconds_since_boot() * static_cast<double>(ticks_per_second());
  for (const Process& each : read_processes()) {
    const double age =
        (now - static_cast<double>(each.start)) / static_cast<double>(ticks_per_second());
    if (each.parent != 1 || each.is_dead() || age > kYoung || !is_mine(each.pid)) continue;
    if (met.insert(each.pid).second) found = each.pid;
  }
  return found;
}

void add_hopper(std::vector<std::string>& unseen) {
  std::set<pid_t> met;
  const auto last = follow_hopper([&met] { return meet_young_orphan(met); }, pause);
  if (last)
    unseen.push_back("processes begin and end all the time, each the child of one that is gone (" +
                     std::to_string(*last) + " " + command_of(*last, kLongestCommand) + ")");
}

}  // namespace

std::optional<pid_t> follow_hopper(const std::function<std::optional<pid_t>()>& meet,
                                   const std::function<void(std::chrono::milliseconds)>& rest) {
  constexpr std::chrono::milliseconds kBetweenLooks{60};
  constexpr std::chrono::milliseconds kBetweenTries{8};
  constexpr int kLooks = 4;
  constexpr int kTries = 3;
  std::optional<pid_t> found;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) rest(kBetweenLooks);
    found = meet();
    for (int tries = 1; tries < kTries && !found; ++tries) {
      rest(kBetweenTries);
      found = meet();
    }
    if (!found) return std::nullopt;
  }
  return found;
}

std::vector<std::string> find_unseen(const std::string& run_id, std::uint64_t began,
                                     const std::vector<std::string>& places) {
  const Sight sight = look_around();
  Table table;
  for (const Process& each : sight.processes) {
    if (!each.is_dead()) table[each.pid] = &each;
  }
  const auto own = find_server(table, ::getpid());
  std::map<pid_t, std::vector<pid_t>> handed_over;
  const std::vector<pid_t> callers = line_of(table, ::getpid());
  std::vector<pid_t> of_others;
  std::vector<pid_t> at_places;
  std::vector<std::string> unseen;
  for (const auto& [pid, process] : table) {
    const auto mark = sight.marks.find(pid);
    if (process->start < began || mark == sight.marks.end()) continue;
    // The run may have started it as that user; or that user set the variable.
    if (!run_id.empty() && mark->second.run_id == run_id && !is_mine(pid)) of_others.push_back(pid);
    if (mark->second.run_id) continue;
    if (const auto handed = find_server(table, pid)) {
      const Process& server = *handed->server;
      const auto servers_mark = sight.marks.find(server.pid);
      const bool is_of_a_run = servers_mark != sight.marks.end() && servers_mark->second.run_id;
      const bool is_own = own && handed->top == own->top;
      const bool may_be =
          is_container(server) || (is_mine(server.pid) && (is_conmon(server) || is_mine(pid)));
      if (!is_own && !is_of_a_run && may_be) handed_over[server.pid].push_back(pid);
    } else if (mark->second.look == RunMark::Look::hidden && !is_known_to_hide(*process) &&
               is_mine(pid)) {
      unseen.push_back("process " + std::to_string(pid) + " (" + command_of(pid, kLongestCommand) +
                       ") began after the run and hides its environment");
    } else if (std::ranges::count(callers, pid) == 0 && is_mine(pid) && is_at(places, pid)) {
      at_places.push_back(pid);
    }
  }
  for (const auto& [server, pids] : handed_over)
    unseen.push_back(describe(*table.at(server), pids));
  if (!of_others.empty())
    unseen.push_back(count_and_name(of_others, "of other users with the run's id"));
  if (!at_places.empty())
    unseen.push_back(count_and_name(
        at_places, "without the run's id in the run's folder, or with the run's log as output"));
  add_hopper(unseen);
  if (!run_id.empty()) add_jobs_of_at(run_id, unseen);
  return unseen;
}

}  // namespace dtool::host
