// SPDX-License-Identifier: MIT
// Grid Engine as a scheduler: a qsub job with slots in a parallel environment. Its script starts
// the other hosts' processes by `qrsh -inherit`.
#include <fmt/format.h>

#include <regex>
#include <set>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/engines/scheduler.h"
#include "cli/scripts.h"

namespace dtool::cli {
namespace {

/// qsub reads its lines word by word.
std::string must_be_qsub_argument(const std::string& text) {
  static const std::set<std::string> kOwn = {"-N", "-S", "-t", "-o",  "-e",      "-j",    "-cwd",
                                             "-r", "-b", "-v", "-wd", "-notify", "-sync", "-pe"};
  if (const std::string fault = must_be_one_line(text); !fault.empty()) return fault;
  static const std::regex kArgument(R"((-[a-z_A-Z]+)( [^\s"'\\]+)*)");
  std::smatch match;
  if (!std::regex_match(text, match, kArgument))
    return fmt::format("'{}' is not -NAME or '-NAME VALUE' of plain words", text);
  return kOwn.contains(match[1]) ? fmt::format("{} is dtool's own to give to qsub", match[1].str())
                                 : "";
}

class GridEngine : public SchedulerEngine {
 public:
  using SchedulerEngine::SchedulerEngine;
  std::string_view name() const override { return "gridengine"; }
  std::string_view title() const override { return "Grid Engine"; }
  std::string way_to_nodes(const std::string& job) const override {
    return fmt::format("qstat -j {} tells its nodes", job);
  }

  bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                const std::vector<Checked>& checked, RunPlan& plan) const override {
    if (shape_of(plan).nodes > 1 && plan.program.empty() &&
        seconds_of_time(request().value("--time")))
      console.note(
          "at its time limit this training writes a checkpoint and ends: Grid Engine cannot "
          "start a job on several nodes again");
    return SchedulerEngine::complete(console, flags, targets, checked, plan);
  }

 protected:
  std::vector<SchedulerOption> options() const override {
    return {
        {"--parallel_environment", "NAME", "the parallel environment for slots on several hosts"},
        {"--partition", "NAME", "where the job is queued"},
        {"--account", "NAME", "the account that the job is charged to"},
        {"--time", "TIME", "limit: MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS"}};
  }
  SchedulerOption argument_option() const override {
    return {"--qsub_arg", "ARG", "another argument of qsub, such as '-l gpu=1'; repeatable"};
  }
  std::string must_be_argument(const std::string& text) const override {
    return must_be_qsub_argument(text);
  }
  void check_request(const JobRequest& request, const JobShape& shape) const override {
    for (const SchedulerOption& option : options()) {
      if (request.value(option.flag).find_first_of(" \t\"'\\") != std::string::npos)
        throw UsageError(fmt::format("{}: '{}' is more than a plain word", option.flag,
                                     request.value(option.flag)));
    }
    if (request.value("--parallel_environment").empty() &&
        static_cast<int>(shape.nodes) * shape.processes > 1)
      throw UsageError("a job of several processes needs --parallel_environment",
                       "qconf -spl lists the parallel environments");
  }
  std::string directives(const JobShape& shape, const JobRequest& request) const override {
    std::string text = fmt::format(
        "#$ -N dtool_{0}\n#$ -S /bin/bash\n#$ -v DTOOL_RUN_ID={0}\n#$ -notify\n#$ -r {1}\n",
        shape.run_id, shape.nodes == 1 ? "y" : "n");
    const auto add = [&text](std::string_view name, const std::string& value) {
      if (!value.empty()) text += fmt::format("#$ {} {}\n", name, value);
    };
    if (const std::string name = request.value("--parallel_environment"); !name.empty())
      add("-pe", fmt::format("{} {}", name, static_cast<int>(shape.nodes) * shape.processes));
    add("-q", request.value("--partition"));
    add("-P", request.value("--account"));
    if (const auto limit = seconds_of_time(request.value("--time")))
      add("-l", fmt::format("h_rt={}", *limit));
    for (const std::string& argument : request.arguments) text += "#$ " + argument + "\n";
    return text;
  }
  std::string variables(const JobShape& shape, const JobRequest& request) const override {
    return assign("limit", std::to_string(seconds_of_time(request.value("--time")).value_or(0))) +
           assign("tasks", std::to_string(shape.tasks)) +
           assign("processes_of_node", std::to_string(shape.processes));
  }
  std::string_view functions() const override { return scripts::kGridengine; }
};

}  // namespace

std::unique_ptr<Engine> make_gridengine_engine(std::shared_ptr<JobRequest> request) {
  return std::make_unique<GridEngine>(std::move(request));
}

}  // namespace dtool::cli
