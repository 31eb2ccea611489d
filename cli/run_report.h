// What `dtool run` says of its plan: for `--dry_run` and for `--json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/console.h"
#include "cli/run_plan.h"
#include "killfiles/killfile.h"

namespace dtool::cli {

/// What a plan that was not carried out leaves open, as typed.
struct OpenQuestions {
  std::string what;
  std::string listener;
  std::string nproc_per_node;
  bool sends_code = false;
};

/// --dry_run: what would run where.
void show_plan(Console& console, const RunPlan& plan, const OpenQuestions& open);

/// --json of a run that was started.
nlohmann::json describe_run(const RunPlan& plan, const killfiles::Killfile& killfile);

}  // namespace dtool::cli
