// SPDX-License-Identifier: MIT
// How the output of a command on hosts is shown or kept, and what becomes dtool's exit code: the
// flags that say so, and what does it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// The values of the flags, and what the command adds.
struct OutputOptions {
  bool fold = false;
  bool diff = false;
  std::string outdir;     ///< empty: the output is shown
  std::string exit_code;  ///< `remote`, `max`, or empty
  /// What a first Ctrl-C does, so that it is told.
  ssh::OnInterrupt on_interrupt = ssh::OnInterrupt::finish;
  /// Optional: adds to what --json has of a host.
  std::function<void(std::size_t host, nlohmann::json& about)> tell = {};
};

void add_output_options(Options& command, OutputOptions& options);

/// Runs a command on hosts, with Remote::run, and hands what happens to `events`.
using RunAll = std::function<std::vector<ssh::HostResult>(ssh::Events& events)>;

/// Shows what the hosts of `remote` say while `run_all` runs `command` there, or writes it into
/// files, and reports those that failed. Returns dtool's exit code. Throws UsageError, before it
/// runs anything, if this machine cannot do that.
int show_output(Console& console, ssh::Remote& remote, const OutputOptions& options,
                std::string_view command, const RunAll& run_all);

}  // namespace dtool::cli
