// What `dtool run` says: of its plan, of failures, and in one document for `--json`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/launchers/launcher.h"
#include "cli/run/plan.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// What a plan that was not carried out leaves open, as typed.
struct OpenQuestions {
  std::string what;
  std::string listener;
  std::string nproc_per_node;
  bool sends_code = false;
};

/// --dry_run: what would run where.
void show_plan(Console& console, const RunPlan& plan, const Launcher& launcher,
               const OpenQuestions& open);

/// What is told of a run from its first look at the hosts to its end: failures as they come, and
/// with --json all of them in one document.
class RunReport {
 public:
  RunReport(Console& console, std::string run_id)
      : console_(console), run_id_(std::move(run_id)), failures_(nlohmann::json::array()) {}

  /// Tells the failures among `results`; true if there are none.
  bool all_well(const std::vector<ssh::HostResult>& results, std::string_view doing);

  /// Why the run failed.
  void tell_cause(const std::string& cause);

  /// With --json prints the document, with what is told of every run added. Returns `exit_code`.
  int end(nlohmann::json document, int exit_code) const;

 private:
  Console& console_;
  std::string run_id_;
  nlohmann::json failures_;
  std::string cause_;
};

/// --json of a run that was started.
nlohmann::json describe_run(const RunPlan& plan, const killfiles::Killfile& killfile);

}  // namespace dtool::cli
