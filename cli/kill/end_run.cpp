// SPDX-License-Identifier: MIT
#include "cli/kill/end_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "cli/host_output.h"
#include "cli/record/recorded.h"
#include "killfiles/whole_file.h"
#include "ssh/remote.h"
#include "ssh/wire/run.h"

namespace dtool::cli {
namespace {

/// Why ending failed on a host that answered.
std::string describe_left(const host::KillReply& outcome) {
  std::string text = fmt::format("{} process{} still there", outcome.left.size(),
                                 outcome.left.size() == 1 ? " is" : "es are");
  for (const std::string& process : outcome.left) text += fmt::format("\n      {}", process);
  return text;
}

/// Whether another host answered than the recorded one, and nothing vouches for the recorded one.
bool is_of_another(const FoundHost& host, const host::KillReply& outcome) {
  return outcome.vouched_for.empty() &&
         compare(host.recorded, host.found) == killfiles::Likeness::another;
}

/// Whether a kill has proven before that nothing is left, and taken the folders away.
bool was_proven(const std::filesystem::path& file) {
  if (file.empty()) return false;
  if (!std::filesystem::exists(file)) return true;
  try {
    return !killfiles::read(file).ended.empty();
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// Makes a failure of an answer from which it does not follow that nothing is left.
void doubt(const FoundHost& host, const host::KillReply& outcome, const std::string& run_id,
           const std::filesystem::path& file, Starts starts, ssh::HostResult& result) {
  constexpr auto kWhy = ssh::Failure::unproven;
  const std::string forget =
      fmt::format("if nothing can be left there: dtool kill {} --forget", run_id);
  if (is_of_another(host, outcome)) {
    result.fail(
        kWhy,
        fmt::format("another host answers to this name, {}; the run was started on {}",
                    describe(host.found), describe(host.recorded)),
        fmt::format("lead the name to {} (HostName in the SSH configuration), or name that host in "
                    "a copy of the killfile, for --screen_ids_file; {}",
                    host.recorded.name, forget));
  } else if (!outcome.no_folder.empty()) {
    // No process outlives a reboot, and none starts without that folder.
    const bool is_proven = compare(host.recorded, host.found) == killfiles::Likeness::rebooted ||
                           !outcome.vouched_for.empty() || was_proven(file);
    if (is_proven) return;
    result.fail(kWhy,
                fmt::format("the run's folder {} is not there, so what was started cannot be known",
                            outcome.no_folder),
                fmt::format("has the home folder changed since then? {}", forget));
  } else if (!outcome.unmarked.empty() && starts == Starts::may_come) {
    result.fail(kWhy,
                fmt::format("cannot write into {}, so a start that is on its way may still come",
                            outcome.unmarked),
                "is the disk full or read-only? Run dtool kill again when it is not");
  } else if (!outcome.locked.empty()) {
    result.fail(kWhy,
                fmt::format("a start is at work in {} and does not end, so the run may still begin",
                            outcome.locked),
                fmt::format("run dtool kill again when it has ended: fuser {}/lock names it",
                            outcome.locked));
  }
}

/// Throws host::BadMessage.
host::KillReply read_kill(const ssh::HostResult& result) {
  host::KillReply reply = ssh::read_reply<host::KillReply>(result);
  constexpr std::int64_t kMost = 1 << 24;  // the kernel gives no more pids than a quarter of that
  if (reply.ended < 0 || reply.ended > kMost || reply.forced < 0 || reply.forced > kMost)
    throw host::BadMessage("the answer has a number of processes that cannot be");
  return reply;
}

void judge(ssh::HostResult& result, FoundHost& host, const killfiles::Killfile& killfile,
           const std::filesystem::path& file, Starts starts, KillReport& report) {
  if (result.failure != ssh::Failure::none) return;
  host::KillReply outcome;
  try {
    outcome = read_kill(result);
  } catch (const host::BadMessage& error) {
    result.fail(ssh::Failure::connection_lost, error.what());
    return;
  }
  report.ended += static_cast<int>(outcome.ended);
  report.forced += static_cast<int>(outcome.forced);
  if (!outcome.cancelled.empty()) report.cancelled = outcome.cancelled;
  if (!outcome.job_left.empty()) {
    result.fail(ssh::Failure::timed_out, "the scheduler may still have it: " + outcome.job_left,
                "run dtool kill again when the scheduler answers");
    return;
  }
  host.unseen = outcome.unseen;
  host.found = killfiles::parse_identity(outcome.host).value_or(killfiles::HostIdentity());
  host.found.host_key = result.host_key;
  if (outcome.left.empty()) {
    doubt(host, outcome, killfile.run_id, file, starts, result);
    return;
  }
  result.fail(ssh::Failure::timed_out, describe_left(outcome),
              "run dtool kill again when what is said there is over");
}

}  // namespace

bool is_proven_ended(const ssh::HostResult& result) {
  try {
    return result.failure == ssh::Failure::none && read_kill(result).left.empty();
  } catch (const host::BadMessage&) {
    return false;
  }
}

KillReport end_run(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
                   std::chrono::milliseconds grace, const std::filesystem::path& file,
                   Starts starts) {
  std::vector<ssh::Task> tasks;
  KillReport report;
  for (const auto& [host, machines] : machines_by_host(remote.hosts(), killfile)) {
    host::KillRequest request{killfile.run_id, {}, {}, grace.count()};
    FoundHost recorded;
    for (const std::size_t i : machines) {
      const killfiles::Machine& machine = killfile.machines[i];
      if (!machine.session.empty()) request.sessions.push_back(machine.session);
      if (!machine.state_folder.empty()) request.state_folders.push_back(machine.state_folder);
      if (machine.identity.is_known()) recorded.recorded = machine.identity;
    }
    // A host that dtool config could not reach: nothing was started there.
    if (request.sessions.empty() && request.state_folders.empty()) continue;
    report.hosts.push_back(std::move(recorded));
    tasks.push_back({host, ssh::ask_host(request)});
  }
  AnswerCount progress(console, remote.hosts(), "ended");
  ssh::RunOptions options;
  options.timeout = grace + std::chrono::seconds(90);
  options.follows = ssh::Follows::more;
  report.results = remote.run(std::move(tasks), progress, options);
  assert(report.results.size() == report.hosts.size());  // else a host would count as proven
  for (std::size_t i = 0; i < report.results.size(); ++i)
    judge(report.results[i], report.hosts[i], killfile, file, starts, report);
  report.none_left =
      std::all_of(report.results.begin(), report.results.end(),
                  [](const auto& result) { return result.failure == ssh::Failure::none; });
  return report;
}

void forget_run(Console& console, ssh::Remote& remote, killfiles::Killfile killfile,
                const std::filesystem::path& file) {
  // Without its folder on the hosts, a run whose killfile is kept would be one that nobody can end.
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) != 0 && errno != ENOENT)
    throw std::filesystem::filesystem_error("cannot delete", file,
                                            std::error_code(errno, std::generic_category()));
  if (!killfile.run_id.empty()) {
    killfile.ended = utc_now();
    try {
      killfiles::write_whole(file, to_text(killfile));
    } catch (const std::system_error&) {
      // A full disk must not keep the file; then only a concurrent kill cannot read the reason.
    }
    remove_on_hosts(console, remote, killfile, What::all);
  }
  std::filesystem::remove(file);
}

}  // namespace dtool::cli
