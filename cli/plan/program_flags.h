// SPDX-License-Identifier: MIT
// The flags of `dtool run` about its program: what the processes are told of each other, which of
// the program's words are filled in, and which machine ends the run.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plan/plan.h"

namespace dtool::cli {

class Options;

/// The words that --fill replaces in a program's words.
inline constexpr std::array<std::string_view, 11> kPlaceholders = {
    "{rank}", "{local_rank}", "{world_size}", "{machine_id}", "{machines}", "{listener}",
    "{ip}",   "{port}",       "{seed}",       "{output_dir}", "{run_id}"};

/// The flags as typed.
struct ProgramFlags {
  bool fill = false;
  std::string rendezvous;
  bool independent = false;
  std::optional<int> ends_with;  ///< the id of a machine
};

void add_program_flags(Options& command, ProgramFlags& flags);

/// Takes them into a plan that has its launcher, machines, program and environment. Throws
/// UsageError if they do not fit these, or each other.
void take_program_flags(const ProgramFlags& flags, RunPlan& plan);

/// The first placeholder in the program's words.
std::optional<std::string_view> find_placeholder(const std::vector<std::string>& program);

}  // namespace dtool::cli
