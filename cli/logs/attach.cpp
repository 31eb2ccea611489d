// SPDX-License-Identifier: MIT
// `dtool attach`: shows the live session of one machine of a run in this terminal, or its log if
// the session has no terminal of its own.
#include <fcntl.h>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/logs/attach.h"
#include "cli/logs/follow.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/watch/status_answer.h"
#include "ssh/fanout/terminal_link.h"
#include "ssh/machine/interrupts.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/wire/run.h"

namespace dtool::cli {
namespace {

/// Puts this process's terminal into raw mode, and restores it when destroyed.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  /// The terminal for a program on a host.
  ssh::Terminal terminal() const;

 private:
  termios before_{};
  // Opened anew, so that their settings do not affect the shell's descriptors.
  int in_ = -1;
  int out_ = -1;
};

RawTerminal::RawTerminal() {
  const char* name = ::ttyname(STDIN_FILENO);
  constexpr int kFlags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  in_ = ::open(name != nullptr ? name : "/dev/tty", O_RDWR | kFlags);
  out_ = ::open(name != nullptr ? name : "/dev/tty", O_RDWR | kFlags);
  if (in_ < 0 || out_ < 0 || ::tcgetattr(in_, &before_) != 0) {
    ::close(in_);
    ::close(out_);
    throw UsageError("cannot open the terminal");
  }
  termios raw = before_;
  ::cfmakeraw(&raw);
  ssh::leave_terminal_with(in_, &before_, nullptr);
  ::tcsetattr(in_, TCSADRAIN, &raw);
}

RawTerminal::~RawTerminal() {
  ::tcsetattr(in_, TCSADRAIN, &before_);
  ssh::leave_terminal_with(-1, nullptr, nullptr);
  ::close(in_);
  ::close(out_);
}

ssh::Terminal RawTerminal::terminal() const {
  const char* type = std::getenv("TERM");
  return {in_, out_, type != nullptr && *type != '\0' ? type : "xterm", {}};
}

/// Asks about the one machine. An answer that cannot be read is a failure of its host.
ssh::HostResult ask(ssh::TerminalLink& link, const ssh::Command& question,
                    host::StatusReply& reply) {
  ssh::HostResult result = link.ask(question);
  if (!result.ok()) return result;
  const auto read = ssh::reply_in<host::StatusReply>(result);
  if (read && read->machines.size() != 1)
    result.fail("the answer is about another number of machines");
  if (result.ok()) reply = *read;
  return result;
}

std::string how_it_ended(const host::StatusAnswer& job) {
  if (job.exit_code) return fmt::format("has ended with exit code {}", *job.exit_code);
  return job.is_killed ? "was ended by dtool kill" : "";
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string text(value);
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

/// A host often does not know the newest kinds of terminals.
std::string attach_line(const killfiles::Machine& machine, const std::string& terminal) {
  const std::string screen = terminal + "." + machine.session;
  const std::string show =
      terminal == "tmux"
          ? fmt::format("unset TMUX; cd {} && exec tmux {}-S tmux attach-session",
                        ssh::quote_path(machine.state_folder), speaks_utf8() ? "-u " : "")
          : fmt::format("exec screen {}-x {}", speaks_utf8() ? "-U " : "", ssh::quote(screen));
  return "exec bash -c " + ssh::quote(
                               "! command -v infocmp > /dev/null || infocmp > /dev/null "
                               "2>&1 || export TERM=xterm-256color; " +
                               show);
}

/// Undoes what a program would have undone in the terminal if its connection had not been lost:
/// colours, a hidden cursor, application keys, the mouse, the alternate screen.
constexpr const char* kResetTerminal =
    "\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?1000l\x1b[?2004l\x1b[?1049l";

class AttachAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", run_, "a run's id or a part of it; last, last-1 (the newest run)");
    command.add_option("-m,--machine I", machine_,
                       "the machine's id or host; optional if there is only one");
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    require_terminal(console, "dtool attach", "dtool logs shows what a machine prints");
    const killfiles::Killfile killfile = recorded_run(run_);
    const Targets targets = recorded_targets(killfile, hosts_, invocation.settings.users());
    const std::size_t place = choose(killfile);
    const killfiles::Machine& machine = killfile.machines[place];
    const std::string name = fmt::format("machine{} of {}", machine.id, killfile.run_id);
    const std::string hint = "dtool logs " + killfile.run_id;

    std::optional<ssh::TerminalLink> link(std::in_place, targets.hosts[place], targets.connect);
    const auto failed = [&](const ssh::HostResult& result, const std::string& doing) {
      report_failures(console, {result}, doing);
      return link->interrupted() ? kInterrupted : kSomeFailed;
    };
    const ssh::Command question = status_command({{killfile.run_id, machine}}, Detail::brief);
    host::StatusReply reply;
    const ssh::HostResult first = ask(*link, question, reply);
    if (!first.ok()) return failed(first, "looking for " + name);
    const std::string stranger = stranger_at(machine, reply.host, first);
    if (!stranger.empty()) console.note(fmt::format("{}: {}", name, stranger));
    const host::StatusAnswer job = reply.machines.front();
    const std::string ended = how_it_ended(job);
    if (job.terminal.empty() || !ended.empty()) {
      console.fail(fmt::format("{} {}", name, ended.empty() ? "has no session" : ended), hint);
      return kSomeFailed;
    }
    bool left_well = true;
    if (job.terminal == "none") {
      link.reset();  // following a log is work for a fleet's connection
      console.note(fmt::format(
          "{} has no terminal, since neither screen nor tmux was there when it started: its log "
          "follows; Ctrl-c leaves it running",
          name));
      const int code = show_log(invocation, targets, killfile, place);
      if (code != kAllWell) return code;
      link.emplace(targets.hosts[place], targets.connect);
    } else {
      const std::string keys = "Ctrl-a d leaves it running, Ctrl-c twice ends the run everywhere";
      console.note(name + ": " + keys);
      const ssh::HostResult shown =
          show_in_terminal(console, *link, attach_line(machine, job.terminal), keys);
      if (shown.failure != ssh::Failure::none) return failed(shown, "attaching to " + name);
      left_well = shown.exit_code == 0;
    }
    const ssh::HostResult last = ask(*link, question, reply);
    if (!last.ok()) return failed(last, "looking for " + name);
    const std::string now = how_it_ended(reply.machines.front());
    console.note(now.empty() ? name + ": detached, it goes on"
                             : fmt::format("{} {}\nhint: {}", name, now, hint));
    return left_well || !now.empty() ? kAllWell : kSomeFailed;
  }

 private:
  std::size_t choose(const killfiles::Killfile& killfile) const {
    if (!machine_.empty()) return find_machine(killfile, machine_);
    if (killfile.machines.size() == 1) return 0;
    throw UsageError(fmt::format("{} has {} machines", killfile.run_id, killfile.machines.size()),
                     fmt::format("name one: --machine {}", killfile.machines.front().id));
  }

  /// Shows the end of the machine's log and its further lines, if there is no terminal.
  int show_log(Invocation& invocation, const Targets& targets, killfiles::Killfile killfile,
               std::size_t place) const {
    constexpr std::uint64_t kLines = 50;
    Console& console = invocation.console;
    killfile.machines = {killfile.machines[place]};
    const auto remote = invocation.reach({targets.hosts[place]}, targets.connect);
    FollowedLogs output(console, killfile, Fold::no, {.tail = kLines});
    std::vector<ssh::HostResult> results = output.read(*remote);
    if (remote->interrupted()) return kInterrupted;
    if (results.front().failure == ssh::Failure::none) return kAllWell;  // the run has ended
    report_failures(console, results, "following the log of " + killfile.run_id);
    return kSomeFailed;
  }

  HostOptions hosts_;
  std::string run_;
  std::string machine_;
};

}  // namespace

void require_terminal(const Console& console, const std::string& command, const std::string& hint) {
  if (console.json())
    throw UsageError(command + " shows a terminal and has nothing for --json", hint);
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return;
  throw UsageError(command + " needs a terminal for its input and output", hint);
}

ssh::HostResult show_in_terminal(Console& console, ssh::TerminalLink& link, const std::string& line,
                                 const std::string& on_interrupt) {
  ssh::HostResult shown;
  {
    const RawTerminal raw;
    ssh::Terminal terminal = raw.terminal();
    terminal.on_interrupt = on_interrupt;
    shown = link.run_in_terminal(line, terminal);
  }
  if (shown.failure != ssh::Failure::none) console.steer(To::err, kResetTerminal);
  return shown;
}

std::size_t find_machine(const killfiles::Killfile& killfile, const std::string& wanted) {
  const std::vector<std::size_t> chosen = choose_machines(killfile, {wanted});
  if (chosen.size() == 1) return chosen.front();
  throw UsageError(fmt::format("{} has several machines on {}", killfile.run_id, wanted),
                   "name one by its id");
}

std::unique_ptr<Action> make_attach() {
  return std::make_unique<AttachAction>();
}

}  // namespace dtool::cli
