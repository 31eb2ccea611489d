// SPDX-License-Identifier: MIT
// The messages of `dtool run`: its plan, failures, and the one document of `--json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/engines/engine.h"
#include "cli/plan/plan.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// The values, as typed, that a plan which is only shown leaves open.
struct OpenQuestions {
  std::string listener;
  std::string nproc_per_node;
  std::string code;  ///< the code that is sent, in words; empty: no code is sent
};

/// For --dry_run: shows what would run where.
void show_plan(Console& console, const RunPlan& plan, const Engine& engine,
               const OpenQuestions& open);

/// Reports on a run from the first check of the hosts to its end: failures as they come, and with
/// --json all of them in one document.
class RunReport {
 public:
  RunReport(Console& console, std::string run_id) : console_(console), run_id_(std::move(run_id)) {}

  /// Reports the failures among `results`; true if there are none.
  bool all_well(const std::vector<ssh::HostResult>& results, std::string_view doing);

  /// Why the run failed, for the document.
  void keep_cause(const std::string& cause) { cause_ = cause; }

  /// With --json: prints the document of a run that was not started. Returns `exit_code`.
  int end(int exit_code) const;
  /// The same for one that was.
  int end(const RunPlan& plan, const killfiles::Killfile& killfile, int exit_code) const;

 private:
  int end(nlohmann::json document, int exit_code) const;

  Console& console_;
  std::string run_id_;
  std::vector<ssh::HostResult> failures_;
  std::string cause_;
};

}  // namespace dtool::cli
