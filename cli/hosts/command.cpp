// SPDX-License-Identifier: MIT
// `dtool command`: runs a command on all hosts at once.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "cli/action.h"
#include "cli/command_output.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

constexpr const char* kGpuTable = "nvidia-smi | head -n 35";
/// The same, for any login shell, but with the exit code of nvidia-smi and not that of head: a host
/// without it has failed.
constexpr const char* kGpuTableOrFailure =
    "sh -c 'table=$(nvidia-smi); code=$?; "
    "[ -z \"$table\" ] || printf \"%s\\n\" \"$table\" | head -n 35; exit $code'";
constexpr int kNotFound = 127;

/// Standard input, for all hosts at once.
std::shared_ptr<const ssh::SharedBytes> standard_input() {
  ssh::SharedBytes bytes;
  bytes.most_unsent = std::uint64_t{64} << 20U;
  bytes.make = [](const ssh::SharedBytes::Write& write) {
    constexpr int kPause = 100;  // milliseconds
    std::array<char, 65'536> piece;
    for (;;) {
      write({});  // it throws where nobody needs more
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, kPause) == 0) continue;
      const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (count == 0) return;
      if (count > 0) write({piece.data(), static_cast<std::size_t>(count)});
      if (count < 0 && errno != EINTR && errno != EAGAIN)
        throw std::runtime_error(
            fmt::format("standard input cannot be read: {}", std::strerror(errno)));
    }
  };
  return std::make_shared<const ssh::SharedBytes>(std::move(bytes));
}

class CommandAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  void take_program(const std::vector<std::string>& words);
  Targets targets(Invocation& invocation) const;
  std::vector<ssh::HostResult> run_all(ssh::Remote& remote, ssh::Events& events) const;

  HostOptions hosts_;
  OutputOptions output_;
  std::string command_ = kGpuTable;
  std::optional<Option> command_flag_;
  bool shell_ = false;
  double timeout_ = 0;
  bool fail_fast_ = false;
  bool stdin_ = false;
  bool yes_ = false;
};

void CommandAction::add_options(Options& command) {
  add_host_options(command, hosts_);
  command_flag_ =
      command.add_option("--command", command_, "a command line for each host's login shell")
          .check(must_not_be_empty)
          .show_default();
  command.add_flag("--shell", shell_, "join the words after -- with blanks, as ssh does");
  command.add_option("--timeout", timeout_, "end the command after this many seconds")
      .check(must_be_seconds)
      .type_name("SECONDS");
  command.add_flag("--stdin", stdin_, "give standard input to the command on all hosts");
  command.add_flag("--fail_fast", fail_fast_,
                   "the first host that fails ends the command on the others");
  add_output_options(command, output_);
  command.add_flag("--yes", yes_, "do not ask before using a recorded run's hosts");
}

/// The words after `--`.
void CommandAction::take_program(const std::vector<std::string>& words) {
  if (words.empty()) {
    if (shell_) throw UsageError("--shell joins the words after --, and there are none");
    return;
  }
  if (command_flag_->is_given())
    throw UsageError("--command and the words after -- both say what to run", "give one of them");
  const bool is_line = shell_ || words.size() == 1;
  command_ = is_line ? fmt::format("{}", fmt::join(words, " ")) : ssh::quote_all(words);
  if (command_.find_first_not_of(' ') == command_.npos)
    throw UsageError("the command after -- is empty");
}

Targets CommandAction::targets(Invocation& invocation) const {
  if (auto chosen = choose_targets(hosts_, invocation.settings.all())) return *chosen;
  const killfiles::Killfile run = recorded_run(
      "", "--runs_on names hosts; without it the command runs on those of the newest run");
  Targets recorded = recorded_targets(run, hosts_, invocation.settings.users());
  std::vector<ssh::Host> each_once;  // a scheduler's machines are reached through one host
  for (const HostMachines& host : machines_by_host(recorded.hosts, run))
    each_once.push_back(recorded.hosts[host.host]);
  recorded.hosts = each_once;
  recorded.slots.resize(each_once.size());
  const std::string hosts = fold_hosts(recorded.hosts);
  const std::string question = fmt::format("run it on the hosts of {}: {}?", run.run_id, hosts);
  const std::optional<bool> answer = yes_ ? true : invocation.console.ask(question);
  if (!answer)
    throw UsageError("no hosts were named",
                     fmt::format("--runs_on names them; --yes takes those of {}", run.run_id));
  if (!*answer) throw UsageError("nothing was run", "--runs_on names other hosts");
  return recorded;
}

std::vector<ssh::HostResult> CommandAction::run_all(ssh::Remote& remote,
                                                    ssh::Events& events) const {
  const bool shows_gpus = command_ == kGpuTable;
  std::vector<ssh::Task> tasks;
  ssh::Command command{shows_gpus ? kGpuTableOrFailure : command_};
  if (stdin_) command.input_from = standard_input();
  for (std::size_t i = 0; i < remote.hosts().size(); ++i) tasks.push_back({i, command});
  ssh::RunOptions options;
  options.keep_output = ssh::KeepOutput::no;
  if (timeout_ > 0) options.timeout = from_seconds(timeout_);
  // Who waits for a first Ctrl-C's hosts would wait for an input that may never end.
  if (stdin_) options.on_interrupt = ssh::OnInterrupt::leave;
  if (fail_fast_) options.on_failure = ssh::OnFailure::end_others;
  auto results = remote.run(std::move(tasks), events, options);
  for (ssh::HostResult& result : results) {
    if (result.failure == ssh::Failure::timed_out)
      result.hint = "--timeout sets how long a command may take";
    if (shows_gpus && result.failure == ssh::Failure::none && result.exit_code == kNotFound) {
      result.error = "there is no nvidia-smi, so dtool cannot tell its GPUs";
      result.hint = "--command names what is to be run";
    }
  }
  return results;
}

int CommandAction::run(Invocation& invocation) {
  take_program(invocation.program);
  if (stdin_ && hosts_.hostfile == "-")
    throw UsageError("--stdin and --hostfile - both read standard input",
                     "--runs_on names the hosts, or --hostfile a file");
  const Targets chosen = targets(invocation);
  const auto remote = invocation.reach(chosen.hosts, chosen.connect);
  return show_output(invocation.console, *remote, output_, command_,
                     [&](ssh::Events& events) { return run_all(*remote, events); });
}

}  // namespace

std::unique_ptr<Action> make_command() {
  return std::make_unique<CommandAction>();
}

}  // namespace dtool::cli
