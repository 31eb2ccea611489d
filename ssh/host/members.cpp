// SPDX-License-Identifier: MIT
#include "ssh/host/members.h"

#include <signal.h>
#include <unistd.h>

#include <cassert>
#include <optional>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

using Table = std::map<pid_t, const Process*>;

/// Adds all whose parent, or whose session's leader where that counts, is in the set already.
enum class By { parent, parent_or_session };
void add_descendants(const Table& table, By by, std::set<pid_t>& pids) {
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const auto& [pid, process] : table) {
      if (pids.contains(pid)) continue;
      const bool is_one = pids.contains(process->parent) ||
                          (by == By::parent_or_session && pids.contains(process->session));
      if (is_one) has_grown = pids.insert(pid).second;
    }
  }
}

/// Whether it is one of them, or one of them is above it.
bool descends_from(pid_t pid, const std::set<pid_t>& pids) {
  constexpr int kDeepest = 1000;
  for (int i = 0; i < kDeepest && pid > 1; ++i) {
    if (pids.contains(pid)) return true;
    const auto process = find_process(pid);
    if (!process) return false;
    pid = process->parent;
  }
  return false;
}

}  // namespace

Sight look_around(const std::function<void(pid_t, const std::string& run_id, uid_t)>& on_mark) {
  constexpr int kMostRounds = 50;  // a host where processes begin all the time has no last one
  Sight sight;
  bool has_new = true;
  for (int round = 0; has_new && round < kMostRounds; ++round) {
    has_new = false;
    for (const pid_t pid : list_pids()) {
      if (sight.marks.contains(pid)) continue;
      has_new = true;
      RunMark mark = read_run_mark(pid);
      if (mark.run_id) {
        // Root reads other users' environments too, and they may write there what they like.
        if (const auto user = user_of(pid)) {
          sight.users[pid] = *user;
          if (on_mark) on_mark(pid, *mark.run_id, *user);
        }
      }
      sight.marks.emplace(pid, std::move(mark));
    }
  }
  sight.processes = read_processes();
  return sight;
}

void send_to(const Member& member, int signal) {
  // 0, -1 and 1 would be far more than this run.
  assert(member.pid > 1 && member.pid != ::getpid());
  if (find_process(member.pid, member.start)) ::kill(member.pid, signal);
}

Members MemberFinder::look() {
  return look(look_around());
}

Members MemberFinder::strike() {
  std::set<pid_t> spared = traces_.spared;
  spared.insert(::getpid());
  return look(look_around([this, &spared](pid_t pid, const std::string& run_id, uid_t user) {
    assert(pid > 1);
    const bool is_ours = run_id == traces_.run_id && user == ::geteuid();
    if (is_ours && !descends_from(pid, spared) && !descends_from(::getpid(), {pid}))
      ::kill(pid, SIGKILL);
  }));
}

Members MemberFinder::look(const Sight& sight) {
  std::set<pid_t> members = traces_.seeds;
  std::set<pid_t> foreign;
  for (const auto& [pid, mark] : sight.marks) {
    if (!mark.run_id || traces_.run_id.empty()) continue;
    if (*mark.run_id != traces_.run_id) {
      foreign.insert(pid);
    } else if (const auto user = sight.users.find(pid);
               user != sight.users.end() && user->second == ::geteuid()) {
      members.insert(pid);
    }
  }
  for (const pid_t pid : members) foreign.erase(pid);

  Table table;
  for (const Process& process : sight.processes) {
    if (process.is_dead() || foreign.contains(process.pid)) continue;
    table[process.pid] = &process;
    const auto leader = traces_.leaders.find(process.session);
    const bool is_in_session = leader != traces_.leaders.end() && process.start >= leader->second;
    if (is_in_session || seen_.contains({process.pid, process.start})) members.insert(process.pid);
  }
  add_descendants(table, By::parent_or_session, members);

  std::set<pid_t> spared = traces_.spared;
  spared.insert(::getpid());
  add_descendants(table, By::parent, spared);
  for (const pid_t pid : spared) members.erase(pid);

  Members found;
  for (auto at = table.find(::getpid()); at != table.end() && at->first > 1;
       at = table.find(at->second->parent)) {
    if (members.erase(at->first) != 0) found.callers.push_back(at->first);
  }
  for (const pid_t pid : members) {
    const auto at = table.find(pid);
    if (at == table.end()) {
      found.ended_meanwhile = found.ended_meanwhile || sight.users.contains(pid);
      continue;
    }
    const auto known = sight.users.find(pid);
    const auto user = known != sight.users.end() ? known->second : user_of(pid);
    if (!user) continue;
    const Process& process = *at->second;
    seen_.insert({pid, process.start});
    found.living.push_back({pid, process.start, *user, process.cpu_ticks, process.resident_pages});
  }
  return found;
}

namespace {

Boot compare_boots(std::string_view recorded, std::string_view current) {
  const auto is_of_init = [](std::string_view boot) { return boot.starts_with(kBootOfInit); };
  if (recorded.empty() || current.empty() || is_of_init(recorded) != is_of_init(current))
    return Boot::unknown;
  if (recorded != current) return Boot::earlier;
  // Many boots of a machine begin with the same start time.
  return is_of_init(current) ? Boot::unknown : Boot::this_one;
}

}  // namespace

std::optional<Leader> parse_leader(std::string_view line, std::string_view boot) {
  const auto pid = parse_number<pid_t>(cut_word(line));
  const auto start = parse_number<std::uint64_t>(cut_word(line));
  if (!pid || *pid < 1 || !start) return std::nullopt;
  return Leader{*pid, *start, compare_boots(cut_word(line), boot)};
}

std::optional<Process> find_leader(const Leader& leader) {
  if (leader.boot == Boot::earlier) return std::nullopt;
  return find_process(leader.pid, leader.start);
}

void add_leader(const Leader& leader, RunTraces& traces) {
  if (leader.boot == Boot::earlier) return;
  // Where the leader is gone its session may live on, and no other process of this boot gets its
  // number then.
  const bool may_live_on = leader.boot == Boot::this_one && !find_process(leader.pid);
  if (may_live_on || find_leader(leader)) traces.leaders[leader.pid] = leader.start;
}

JobFiles read_job_files(const std::string& folder) {
  return {parse_leader(read_line(folder + "/process"), current_boot()),
          read_line(folder + "/holder")};
}

}  // namespace dtool::host
