// SPDX-License-Identifier: MIT
// Where the words after `--` run: `dtool command` has them run on hosts (cli/hosts/command.cpp),
// `dtool exec` beside a run (exec.cpp), as `dtool ssh` does.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/host_options.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// The hosts of a command, and what each of them is asked to run.
struct CommandPlace {
  virtual ~CommandPlace() = default;
  /// `line`: for a flag that takes the command line too.
  virtual void add_options(Options& command, std::string& line) = 0;
  virtual Targets targets(Invocation& invocation) = 0;
  /// The results of hosts where nothing can be run; all the others are ready.
  virtual std::vector<std::optional<ssh::HostResult>> make_ready(ssh::Remote& remote);
  /// The command line for that host's login shell. `words`: as after `--`, one being a line.
  virtual std::string line(std::size_t host, const std::vector<std::string>& words) const;
  /// More about a host for --json.
  virtual void tell(std::size_t /*host*/, nlohmann::json& /*about*/) const {}
  /// Whether the hosts are named there.
  virtual bool reads_standard_input() const { return false; }
  virtual ssh::OnInterrupt on_interrupt() const { return ssh::OnInterrupt::finish; }
};

/// `dtool command`, or one that runs its words in another place.
std::unique_ptr<Action> make_command_at(std::unique_ptr<CommandPlace> place);

// Commands beside a run's own: in its folder, environment and container, with its variables.

/// The run that `id` means, the newest if it is empty. Throws UsageError if no command can be run
/// beside it.
killfiles::Killfile run_to_visit(const std::string& id);

/// The request after which visit_line() can be used on the machine's host, and why it may not be:
/// another host answers, or the answer cannot be read. The result of a host that is ready is ok.
ssh::Command visit_request(const killfiles::Killfile& run, std::size_t machine);
ssh::HostResult check_visit(const killfiles::Killfile& run, std::size_t machine,
                            ssh::HostResult result);

/// Asks all machines of the run, whose hosts are those of `remote`, and checks their answers.
/// Nothing: the machine is ready.
std::vector<std::optional<ssh::HostResult>> find_unready(ssh::Remote& remote,
                                                         const killfiles::Killfile& run);

/// The line for the host's login shell. `words`: as after `--`; none: a shell.
std::string visit_line(const killfiles::Killfile& run, std::size_t machine,
                       std::vector<std::string> words);

/// Shows a page of this machine's in the user's web browser, or notes that there is none.
void open_in_browser(Console& console, const std::string& address);

}  // namespace dtool::cli
