// Many hosts as one thing that can be asked to do something: the seam between commands and the
// network. fleet.h has the real one; tests use a fake that records what it was asked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ssh/host.h"

namespace dtool::ssh {

/// What this machine makes once for the standard input of any number of hosts' commands. It is kept
/// on disk in a file without a name, and sent from there as it grows, to each host as fast as that
/// takes it.
struct SharedBytes {
  using Write = std::function<void(std::string_view)>;
  /// Hands all of it to `write`, on a thread of its own. What it throws is why there is no more.
  std::function<void(const Write& write)> make;
  /// Where it is given: is told once, when all is made and while a host is being sent it, how many
  /// bytes there are, and their SHA-256 in hex.
  std::function<void(std::uint64_t, const std::string&)> on_whole = {};
};

/// How far something is on its way, in bytes.
struct Transferred {
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> all = {};  ///< there are to be; nothing: that is not known yet
};

/// What a command's input is for: the line in the host's login shell, or dtool-host, dtool's own
/// program on the hosts, which is brought there where it is missing.
enum class RunBy { login_shell, host_program };

/// A command line for the host's login shell, and all bytes of its standard input; or requests for
/// dtool-host (ssh/host_request.h), with an empty line.
struct Command {
  std::string line;
  std::string input = {};
  /// Follows `input`, where it is given. Commands of one Remote::run that name the same one share
  /// it. Where it cannot be made, the command fails with Failure::local_program.
  std::shared_ptr<const SharedBytes> input_from = {};
  RunBy run_by = RunBy::login_shell;
};

/// A program on this machine that reaches the host through dtool's own connection, as rsync does
/// with its remote shell. Its working folder is this process's.
struct LocalProgram {
  std::vector<std::string>
      arguments;  ///< program first; the word kRemoteShell stands for the remote shell
  std::string input = {};
};

/// Stands for the remote-shell command line in LocalProgram::arguments.
inline constexpr std::string_view kRemoteShell = "{remote_shell}";

enum class KeepOutput { no, yes };

/// How long a task may take, and what is kept of what it says.
struct TaskOptions {
  std::optional<std::chrono::milliseconds> timeout = {};  ///< connecting not included
  KeepOutput keep_output = KeepOutput::yes;
};

/// Something for one host to do.
struct Task {
  std::size_t host = 0;  ///< index into Remote::hosts()
  std::variant<Command, LocalProgram> step;
  std::optional<TaskOptions> options = {};  ///< nothing: as for all tasks of the run
};

/// What a host does after its task, over the same connection; over a new one where that is lost.
struct NextTask {
  /// Nothing: that depends on other hosts and is not settled. After the pause the question comes
  /// again, with the same result.
  std::optional<Task> task;
  std::chrono::milliseconds pause{0};  ///< before it
};

/// Why there is no exit code.
enum class Failure {
  none,
  unreachable,  ///< no connection: refused, no route, name unknown, dropped greeting after all
                ///< tries
  connect_timed_out,
  host_key_unknown,
  host_key_changed,
  host_key_revoked,
  host_key_unproven,  ///< a line of known_hosts that may be about it cannot be judged by dtool
  not_authenticated,
  timed_out,        ///< the command took longer than allowed
  connection_lost,  ///< in the middle
  not_started,      ///< the user interrupted dtool before this host's turn
  local_program,    ///< what this machine had to do for it could not be done
  host_program,     ///< dtool-host could not be put on the host, or does not run there
  unproven,         ///< it answered, and that does not tell what was asked: another host, say
};

/// The failure's name as `--json` prints it: `host_key_unknown`.
std::string_view to_string(Failure failure);

/// What a host answered. A failing host is data, never an exception.
struct HostResult {
  Host host;
  int exit_code =
      -1;           ///< of the command; 128 + signal where a signal ended it; -1 without an answer
  std::string out;  ///< standard output, where it was asked to be kept
  std::string err;  ///< standard error, likewise
  std::string log_in_said = {};  ///< before dtool-host spoke, where that was asked
  Failure failure = Failure::none;
  std::string error;          ///< one sentence about `failure`
  std::string hint;           ///< what the user can do about it, or empty
  std::string host_key = {};  ///< `ssh-ed25519 SHA256:…`, of its server; empty where not known
  std::string address =
      {};  ///< of a host out of reach whose name the configuration maps to another
  std::chrono::milliseconds elapsed{
      0};  ///< from this host's turn to its answer, connecting and earlier tasks included

  bool ok() const { return failure == Failure::none && exit_code == 0; }
};

/// Stands in HostResult::hint for the hosts that share it, as --runs_on takes them.
inline constexpr std::string_view kHostsInHint = "{hosts}";

enum class Stream { out, err };

/// Is told what happens while it happens, on the thread that called Remote::run.
struct Listener {
  virtual ~Listener() = default;
  /// Bytes as they came; not cut at lines. A HostError from here ends the host's task with that.
  virtual void on_output(std::size_t /*host*/, Stream /*stream*/, std::string_view /*bytes*/) {}
  /// The host was handed so much of its Command::input_from.
  virtual void on_input(std::size_t /*host*/, const Transferred& /*input*/) {}
  /// What the host is to do next, from the result of its last task: a further step that waits for
  /// no other host, or the same once more. Nothing: that was the host's answer. Is asked after each
  /// task that was begun; after an interrupt a task that it names, and a question that was not
  /// settled, is answered with not_started.
  virtual std::optional<NextTask> next_task(std::size_t /*host*/, const HostResult& /*result*/) {
    return std::nullopt;
  }
  /// The host's answer: the result of its last task. Comes once for each.
  virtual void on_result(std::size_t /*host*/, const HostResult& /*result*/) {}
  /// The first SIGINT or SIGTERM came; `running` hosts have not answered.
  virtual void on_interrupt(const std::vector<std::size_t>& /*running*/) {}
};

/// What the first SIGINT does to hosts whose turn has come: wait for their answer, or leave them.
enum class OnInterrupt { finish, leave };

/// How one call of Remote::run behaves, and each of its tasks that has no options of its own.
struct RunOptions : TaskOptions {
  OnInterrupt on_interrupt = OnInterrupt::finish;
};

/// Many hosts. Connections open with a host's first task and stay for the next ones.
struct Remote {
  virtual ~Remote() = default;

  virtual const std::vector<Host>& hosts() const = 0;

  /// Does all tasks, at most one a host, at once up to the width, and those that the listener has
  /// hosts go on with; returns the hosts' last results in the tasks' order. A second SIGINT ends
  /// the wait: hosts that have not answered get Failure::connection_lost.
  virtual std::vector<HostResult> run(std::vector<Task> tasks, Listener& listener,
                                      const RunOptions& options) = 0;

  /// Whether SIGINT or SIGTERM came since the start; later tasks are not begun.
  virtual bool interrupted() const = 0;
};

}  // namespace dtool::ssh
