// SPDX-License-Identifier: MIT
// The start of a run, and its end if it is followed.
#include "cli/run/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <filesystem>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/kill/end_run.h"
#include "cli/logs/follow.h"
#include "cli/plan/program_words.h"
#include "cli/plot/panel.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/watch/record_end.h"
#include "cli/watch/status_answer.h"
#include "ssh/screen_job.h"

namespace dtool::cli {
namespace {

/// Some machine did not start: a distributed run cannot go on without it, so the others are ended.
/// `started` is how the starts went.
int give_up(Console& console, ssh::Remote& remote, const std::vector<ssh::HostResult>& started,
            const killfiles::Killfile& killfile, RunReport& report) {
  const bool have_answered = std::ranges::all_of(started, [](const ssh::HostResult& each) {
    return each.failure == ssh::Failure::none || each.failure == ssh::Failure::not_started;
  });
  const Starts starts = have_answered ? Starts::have_answered : Starts::may_come;
  const auto file = killfiles::path_of(killfile_folder(), killfile.run_id);
  const KillReport ended =
      end_run(console, remote, killfile, std::chrono::seconds(5), file, starts);
  if (ended.none_left) {
    forget_run(console, remote, killfile, file);
    forget_record(killfile.run_id);
    console.note("no process of the run is left");
    return kSomeFailed;
  }
  report.all_well(ended.results, "ending the jobs that had started");
  console.fail("something may still run", fmt::format("dtool kill {}", killfile.run_id));
  return kSomeFailed;
}

/// Writes the scheduler's id of the run into the killfile, if a scheduler has it.
void write_job(const std::vector<ssh::HostResult>& results, killfiles::Killfile& killfile) {
  for (ssh::HostResult result : results) {
    const auto reply = ssh::reply_to_start(result);
    if (!reply || reply->job.empty()) continue;
    killfile.job = reply->job;
    killfiles::write(killfile_folder(), killfile);
    return;
  }
}

int follow_on(Console& console, ssh::Remote& remote, const RunPlan& plan,
              const killfiles::Killfile& killfile, RunReport& report) {
  auto [results, cause] = follow_logs(console, remote, killfile);
  if (remote.interrupted()) {
    console.note(fmt::format("end it with: dtool kill {}", killfile.run_id));
    return kInterrupted;
  }
  const std::vector<MachineStatus> machines = ask_for_end(console, remote, killfile);
  const bool is_well = report.all_well(results, killfile.run_id);
  // A program that cannot write says it nowhere.
  const bool is_full =
      std::ranges::any_of(machines, [](const auto& each) { return !each.full_disk.empty(); });
  if (const auto found = cause_of(machines); found && is_full) cause = found->text;
  // The bundled trainer's runs have curves.
  const bool has_curves =
      is_well && plan.program.empty() && show_curves_at_end(console, remote, killfile);
  if (is_well)
    console.note(fmt::format("{}: ended on {}", console.styled_error(Style::bold, killfile.run_id),
                             fold_hosts(remote.hosts())));
  report.keep_cause(cause);
  const bool is_on_one = machines_by_host(remote.hosts(), killfile).size() == 1;
  std::filesystem::path outputs = killfile.machines.front().output_folder;
  // A run for each of several seeds has their folders side by side.
  if (is_on_one && killfile.machines.back().output_folder != outputs)
    outputs = outputs.parent_path();
  if (has_curves) console.note(fmt::format("curves:  dtool plot {}", killfile.run_id));
  console.note(fmt::format("outputs: {}{}\nforget:  dtool kill {} --delete", outputs.string(),
                           is_on_one ? "" : " on each", killfile.run_id));
  if (!cause.empty() && !is_well)
    console.fail(console.styled_error(Style::red, "the cause: " + cause),
                 hint_at_cause(cause, plan.world_size, plan.program));
  return exit_code_of(results, remote);
}

/// Nothing starts that the killfile does not name.
bool is_recorded(const ssh::ScreenJob& job, const killfiles::Killfile& killfile) {
  return std::ranges::any_of(killfile.machines, [&job](const killfiles::Machine& each) {
    return each.state_folder == job.state_folder && each.session == job.session;
  });
}

/// A copy of the record goes into the run's folder on machine 0's host, for other launchers.
void add_record(const killfiles::Killfile& killfile, const std::string& record,
                std::vector<HostJob>& jobs) {
  const auto of_first = std::ranges::find_if(jobs, [&killfile](const HostJob& each) {
    return each.job.state_folder == killfile.machines.front().state_folder;
  });
  if (of_first != jobs.end()) of_first->job.files.emplace_back("../record.json", record);
}

/// Over the connections that there are, where each is one machine's.
int follow_run(Console& console, ssh::Remote& remote, const RunPlan& plan,
               const killfiles::Killfile& killfile, const ssh::ConnectOptions& connect,
               RunReport& report) {
  if (remote.hosts().size() == killfile.machines.size())
    return follow_on(console, remote, plan, killfile, report);
  std::vector<ssh::Host> hosts;
  for (const killfiles::Machine& machine : killfile.machines)
    hosts.push_back(ssh::parse_host(machine.host));
  const auto machines = ssh::make_fleet(hosts, connect);
  return follow_on(console, *machines, plan, killfile, report);
}

}  // namespace

killfiles::Killfile write_killfile(const RunPlan& plan, const ssh::ConnectOptions& connect) {
  killfiles::Killfile killfile;
  static_cast<killfiles::Run&>(killfile) = plan;
  killfile.nproc_per_node = plan.machines.front().processes;
  killfile.code_path = plan.machines.front().code_folder;
  killfile.coordinator = coordinator_of(plan);
  write_connection(connect, killfile);
  for (const MachinePlan& machine : plan.machines) {
    const ssh::ScreenJob job = name_job(plan, machine);
    killfile.machines.push_back({machine.id, ssh::to_string(machine.host), job.session,
                                 job.state_folder, job.log, output_folder(plan, machine),
                                 machine.identity});
  }
  killfiles::write(killfile_folder(), killfile);
  return killfile;
}

int start_run(Console& console, ssh::Remote& remote, const Engine& engine, const RunPlan& plan,
              killfiles::Killfile killfile, const ssh::ConnectOptions& connect, Follow follow,
              const std::string& record, RunReport& report) {
  std::vector<HostJob> jobs = engine.jobs(plan);
  assert(killfile.run_id == plan.run_id && std::ranges::all_of(jobs, [&](const HostJob& each) {
           return is_recorded(each.job, killfile);
         }));
  add_record(killfile, record, jobs);
  const auto results = start_jobs(console, remote, jobs, ssh::OldLog::append);
  write_job(results, killfile);
  if (remote.interrupted()) {
    report.all_well(results, "starting the run");
    console.fail("interrupted while the run was being started",
                 fmt::format("dtool kill {} ends what was started", killfile.run_id));
    return report.end(plan, killfile, kInterrupted);
  }
  if (!report.all_well(results, "starting the run"))
    return report.end(give_up(console, remote, results, killfile, report));
  console.note(fmt::format("{}: {}", console.styled_error(Style::bold, killfile.run_id),
                           engine.started(plan, killfile)));
  int exit_code = kAllWell;
  if (follow != Follow::no) {
    if (follow == Follow::unasked) console.note("Ctrl-C ends this view of it; the run goes on");
    exit_code = follow_run(console, remote, plan, killfile, connect, report);
  } else if (console.quiet() && !console.json()) {
    console.say(killfile.run_id);
  } else if (!console.json()) {
    console.note(
        fmt::format("look:    dtool status {0} --watch\n"
                    "logs:    dtool logs {0} -f\n"
                    "end it:  dtool kill {0}",
                    killfile.run_id));
  }
  return report.end(plan, killfile, exit_code);
}

}  // namespace dtool::cli
