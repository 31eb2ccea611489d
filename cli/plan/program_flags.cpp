// SPDX-License-Identifier: MIT
#include "cli/plan/program_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/action.h"
#include "cli/options.h"

namespace dtool::cli {

void add_program_flags(Options& command, ProgramFlags& flags) {
  command.add_flag("--fill", flags.fill,
                   "replace {rank}, {machine_id}, {listener} and the like in the program's words");
  const auto rendezvous =
      command
          .add_option("--rendezvous", flags.rendezvous,
                      "never: the program gets no RANK, MASTER_ADDR and the like (env)")
          .type_name("env|never")
          .one_of({"env", "never"});
  command
      .add_flag("--independent", flags.independent,
                "each process is a job of its own: rank 0 of 1; a failure ends no other process")
      .excludes(rendezvous);
  command
      .add_whole_number("--ends_with", flags.ends_with,
                        "the run ends well when this machine's program does; the others' are ended")
      .type_name("MACHINE");
}

std::optional<std::string_view> find_placeholder(const std::vector<std::string>& program) {
  for (const std::string& word : program) {
    for (const std::string_view each : kPlaceholders) {
      if (word.find(each) != word.npos) return each;
    }
  }
  return std::nullopt;
}

void take_program_flags(const ProgramFlags& flags, RunPlan& plan) {
  const bool is_torchrun = plan.environment.torchrun != Torchrun::no;
  const char* given = flags.fill                    ? "--fill"
                      : flags.independent           ? "--independent"
                      : flags.rendezvous == "never" ? "--rendezvous never"
                                                    : nullptr;
  if (given != nullptr && plan.program.empty())
    throw UsageError(fmt::format("{} is about a program, and the bundled trainer runs", given),
                     "a program and its words go after --");
  if (is_torchrun && given != nullptr && !flags.fill)
    throw UsageError(
        fmt::format("{} does not go with --torchrun, which joins the processes", given),
        "give one of them");
  const auto has_word = [&plan](std::string_view placeholder) {
    return std::ranges::any_of(plan.program, [&placeholder](const std::string& each) {
      return each.find(placeholder) != each.npos;
    });
  };
  if (flags.fill && is_torchrun && (has_word("{rank}") || has_word("{local_rank}")))
    throw UsageError("torchrun gives the ranks, so --fill does not know {rank} and {local_rank}",
                     "the program finds RANK and LOCAL_RANK among its variables");
  plan.fill = flags.fill;
  if (flags.rendezvous == "never") plan.rendezvous = "never";
  if (flags.independent) {
    if (plan.max_restarts > 0)
      throw UsageError(
          "--max_restarts starts the whole run again, and --independent leaves the "
          "other processes alone",
          "give one of them");
    plan.rendezvous = "independent";
    plan.on_failure = OnFailure::leave;
  }
  if (!flags.ends_with) return;
  if (plan.launcher != "ssh")
    throw UsageError(
        fmt::format("--ends_with goes with --launcher ssh, and this run uses {}", plan.launcher));
  if (plan.on_failure == OnFailure::leave)
    throw UsageError(
        "--ends_with ends the other machines' programs, and --independent and "
        "--on_failure leave let them go on",
        "give one of them");
  if (*flags.ends_with >= static_cast<int>(plan.machines.size()))
    throw UsageError(fmt::format("--ends_with {}: the run has no such machine", *flags.ends_with),
                     plan.machines.size() == 1
                         ? "its only machine has the id 0"
                         : fmt::format("its machines are 0 to {}", plan.machines.size() - 1));
  plan.ends_with = flags.ends_with;
}

}  // namespace dtool::cli
