// What a launcher that gives a run to a cluster's scheduler has in common with the others: the run
// becomes a job, taken on a login host, whose script starts the processes on its nodes. A scheduler
// is a folder of its own beside this one: a class with its flags and directives, and a script with
// the functions that the scripts in scripts/ call (gridengine/ shows all that it takes).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/launchers/launcher.h"
#include "cli/launchers/scheduler/scheduler_text.h"

namespace dtool::cli {

/// What a job has to be, whatever the scheduler.
struct JobShape {
  std::string run_id;
  std::size_t nodes = 1;
  int processes = 1;  ///< of the run, on each node
  int tasks = 1;      ///< that the scheduler starts on each node: torchrun is one
  int notice = 0;     ///< seconds before the end of the job when its script wants to hear of it
  bool wants_notice = false;  ///< whether somebody writes a checkpoint then
};

class SchedulerLauncher : public Launcher {
 public:
  /// `request` is one for all schedulers, since they share flags.
  explicit SchedulerLauncher(std::shared_ptr<JobRequest> request) : shared_(std::move(request)) {}

  std::vector<CLI::Option*> add_options(CLI::App& app) override;
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
  /// Its flags; those of a name and meaning that another scheduler has too are declared once.
  virtual std::vector<SchedulerOption> options() const = 0;
  /// The flag that takes any other argument of its submit program, and the check of such a one.
  virtual SchedulerOption argument_option() const = 0;
  virtual std::string must_be_argument(const std::string& text) const = 0;
  /// Refuses what it cannot do. Throws UsageError.
  virtual void check_request(const JobRequest& /*request*/, const JobShape& /*shape*/) const {}
  /// The lines of the job's script that its submit program reads.
  virtual std::string directives(const JobShape& shape, const JobRequest& request) const = 0;
  /// Variables that its functions read.
  virtual std::string variables(const JobShape& /*shape*/, const JobRequest& /*request*/) const {
    return "";
  }
  /// Shell: the functions that the scripts call.
  virtual std::string_view functions() const = 0;

  JobRequest request() const;
  JobShape shape_of(const RunPlan& plan) const;
  /// The first machine's job, with what both a queued job and one in an allocation need.
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

}  // namespace dtool::cli
