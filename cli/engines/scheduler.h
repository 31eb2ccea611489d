// SPDX-License-Identifier: MIT
// An engine that submits a run to a cluster's scheduler. The run becomes a job, submitted on a
// login host; its script starts the processes on its nodes. Each scheduler has its own file beside
// this one, a class with its flags and directives, and a script with the functions that the scripts
// scheduler_*.sh call (gridengine.cpp and scripts/gridengine.sh are an example).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/engines/engine.h"

namespace dtool::cli {

// What schedulers share: flags, times, seeds and processes, as values and text.

/// A flag of `dtool run` that a scheduler knows with the same meaning.
struct SchedulerOption {
  std::string flag;   ///< dtool's spelling, with underscores
  std::string value;  ///< name of its value in the help text; empty: the flag takes none
  std::string about;
};

/// What the user asked for.
struct JobRequest {
  std::optional<int> nodes;
  std::string ntasks_per_node;
  std::string seeds;
  /// The values of the SchedulerOptions, by flag; empty: not given.
  std::map<std::string, std::string> values;
  std::vector<std::string> arguments;  ///< further arguments in the scheduler's spelling

  /// The value of a flag; empty if it was not given or the scheduler does not have it.
  std::string value(const std::string& flag) const;
};

/// Whether the further arguments contain that name, as `NAME` or `NAME=VALUE`.
bool has_argument(const JobRequest& request, std::string_view name);

/// Seconds of `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`; nothing for an empty text and for
/// words that mean no limit. Throws UsageError on anything else.
std::optional<std::uint64_t> seconds_of_time(const std::string& time);

/// Seconds between the signal and the end of a job whose --time is `time` (may be empty): a quarter
/// of it, at most a minute. Throws UsageError as seconds_of_time.
int notice_before_end(const std::string& time);

/// Processes per node, from those of the three that were given; 1 if none was.
int processes_of_node(const std::string& ntasks_per_node, const std::string& nproc_per_node,
                      const std::string& gpus_per_node);

/// `1-5` or `1,3,7` or both; none for an empty text. Throws UsageError.
std::vector<std::uint64_t> parse_seeds(const std::string& text);

/// A check of a value: the complaint, or nothing.
std::string must_be_one_line(const std::string& text);

/// The properties of a job, independent of the scheduler.
struct JobShape {
  std::string run_id;
  std::size_t nodes = 1;
  int processes = 1;          ///< the processes of the run, per node
  int tasks = 1;              ///< the tasks that the scheduler starts per node: torchrun is one
  int notice = 0;             ///< how many seconds before its end the script wants a signal
  bool wants_notice = false;  ///< whether the program writes a checkpoint on that signal
};

// What a scheduler's script (scripts/slurm.sh, scripts/gridengine.sh) defines for the scripts
// scheduler_*.sh. The check `schedulers` of tests/check_sources holds each against this list.
//
//   scheduler           its name, as people are told it
//   package             Debian's package with its commands
//   programs            its commands; the first submits a job
//   how_to_cancel       a command that cancels a run's job; the run's id stands behind it
//   noise               a regular expression: lines of start_processes that say nothing new
//
// In the job, in its first machine's folder; `run`, `state`, `nodes` and `first` say which:
//
//   job_task            sets `task`, this job's place in its array, from 0
//   prepare_job         comes once, before the processes of the first attempt
//   own_address         prints the address at which other nodes reach this one
//   start_processes     starts every process: the given words, then its numbers (ssh/host/session/
//                       rank.h); ends as the process that failed first
//   is_taken            succeeds if the scheduler ends this job, or puts it back into the queue
//   leave_taken         ends such a job, with the given exit code, so that ask_job can say why
//   ask_for_checkpoint  sends USR1 to the processes
//   put_back            puts this job back into the queue; returns only if it cannot
//
// On the login host, in the same folder:
//
//   try_job             reads the job's script; fails and prints why if it would not be taken
//   may_wait            succeeds if that text is about hosts that are away just now
//   hint_of             prints a hint for that text
//   submit_job          submits the given script with its arguments; prints the job's id first
//   ask_job             prints TASK STATE BEGIN END REASON for each task of the job with the given
//                       id, nothing if there is none; fails and prints why if it cannot ask
//   jobs_of_run         prints the ids of the jobs with the run's name; fails if it cannot ask
//   cancel_jobs         cancels the jobs with the given ids
//   describe_jobs       prints a line on what is left of the run's jobs
//   end_rest            ends processes that the scheduler leaves; fails and prints what is left
class SchedulerEngine : public Engine {
 public:
  /// All schedulers share one `request`, since they share flags.
  explicit SchedulerEngine(std::shared_ptr<JobRequest> request) : shared_(std::move(request)) {}

  std::vector<Option> add_options(Options& command) override;
  Targets reach(const RunFlags& flags, const Settings& settings) const override;
  void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const override;
  void add_needs(const RunPlan& plan, Needs& needs) const override;
  bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                const std::vector<Checked>& checked, RunPlan& plan) const override;
  std::string_view usual_listener() const override {
    return "the job's first node, a port that is free there";
  }
  std::vector<std::pair<std::string, std::string>> texts(const RunPlan& plan) const override;
  std::vector<HostJob> jobs(const RunPlan& plan) const override;
  std::string started(const RunPlan& plan, const killfiles::Killfile& killfile) const override;

 protected:
  /// Its flags. A flag that another scheduler has with the same meaning is declared only once.
  virtual std::vector<SchedulerOption> options() const = 0;
  /// The flag that passes any other argument to its submit program, with a check of its value.
  virtual SchedulerOption argument_option() const = 0;
  virtual std::string must_be_argument(const std::string& text) const = 0;
  /// Refuses requests that it cannot fulfil. Throws UsageError.
  virtual void check_request(const JobRequest& /*request*/, const JobShape& /*shape*/) const {}
  /// The lines at the top of the job's script that its submit program reads.
  virtual std::string directives(const JobShape& shape, const JobRequest& request) const = 0;
  /// Variables that its functions read.
  virtual std::string variables(const JobShape& /*shape*/, const JobRequest& /*request*/) const {
    return "";
  }
  /// Shell: the functions that the scripts call.
  virtual std::string_view functions() const = 0;

  JobRequest request() const;
  JobShape shape_of(const RunPlan& plan) const;
  /// The first machine's job: the parts that a queued job and a job in an allocation share.
  ssh::ScreenJob job_of(const RunPlan& plan) const;
  std::string what_was_started(const RunPlan& plan) const;
  static MachinePlan machine_of(const Targets& targets, int id, int first_rank, int processes);

 private:
  std::string arrays(const RunPlan& plan) const;
  std::string own_text(const RunPlan& plan) const;
  std::string batch(const RunPlan& plan) const;
  std::string rank(const RunPlan& plan) const;
  std::string folders(const RunPlan& plan) const;

  std::shared_ptr<JobRequest> shared_;
  std::vector<std::string> arguments_;
};

// Slurm as a scheduler (slurm.cpp).

/// Its flags. Each has the meaning of sbatch's flag of that name.
const std::vector<SchedulerOption>& slurm_options();

/// The job that dtool runs in, started by salloc or by a batch script.
struct Allocation {
  std::string job;
  std::vector<int> tasks = {1};  ///< the number of tasks on each node
};

/// As the environment tells.
std::optional<Allocation> surrounding_allocation();

/// The `#SBATCH` lines of a job. If a checkpoint is to be written, they ask for a signal before the
/// job's end, unless an argument does so already.
std::string sbatch_lines(const JobShape& shape, JobRequest request);

/// A check for CLI11: the complaint, or nothing.
std::string must_be_sbatch_argument(const std::string& text);

}  // namespace dtool::cli
