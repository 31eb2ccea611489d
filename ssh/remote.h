// SPDX-License-Identifier: MIT
// Many hosts as one object that runs tasks: the seam between commands and the network. fleet.h has
// the real one; tests use a fake that records its tasks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ssh/host.h"
#include "ssh/wire/protocol.h"

namespace dtool::ssh {

/// Bytes that this machine makes once for the standard input of any number of hosts' commands. They
/// are kept in an unnamed file on disk, and sent from there as the file grows, to each host at its
/// own speed.
struct SharedBytes {
  using Write = std::function<void(std::string_view)>;
  /// Hands all bytes to `write`, on a thread of its own. An exception from it says why there are no
  /// more.
  std::function<void(const Write& write)> make;
  /// Optional. Called once when all bytes are made, while they are being sent to a host, with their
  /// number and their SHA-256 in hex.
  std::function<void(std::uint64_t, const std::string&)> on_whole = {};
  /// The most bytes that lie there while some host has not taken them: then `make` is held back. 0:
  /// no limit; nor is there one while more hosts wait than are served at once.
  std::uint64_t most_unsent = 0;
};

/// How far something is on its way, in bytes.
struct Transferred {
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> all = {};  ///< the bytes in total; nothing: not known yet

  /// From 0 to 1; 0 while the total is not known.
  double fraction() const {
    if (!all) return 0;
    return *all == 0 ? 1 : static_cast<double>(bytes) / static_cast<double>(*all);
  }
};

/// What receives a command's input: the host's login shell, or dtool-host, which is installed first
/// if it is missing.
enum class RunBy { login_shell, host_program };

/// A command line for the host's login shell and all its standard input; or requests for dtool-host
/// (ssh/remote.h), with an empty line.
struct Command {
  std::string line;
  std::string input = {};
  /// Optional; comes after `input`. Commands of one Remote::run that name the same object share it.
  /// If it cannot be made, the command fails with Failure::local_program.
  std::shared_ptr<const SharedBytes> input_from = {};
  /// What a later command of the same Remote::run will name as `input_from`: it is made as soon as
  /// that of this one is made.
  std::shared_ptr<const SharedBytes> input_soon = {};
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

/// Whether requests for dtool-host are likely to be followed by others of the same Remote: then the
/// program waits for them. Each one that is started costs a log-in shell.
enum class Follows { nothing, more };

/// How long a task may take, how much of its output is kept, and what follows.
struct TaskOptions {
  std::optional<std::chrono::milliseconds> timeout = {};  ///< connecting not included
  KeepOutput keep_output = KeepOutput::yes;
  Follows follows = Follows::nothing;
};

/// Something for one host to do.
struct Task {
  std::size_t host = 0;  ///< index into Remote::hosts()
  std::variant<Command, LocalProgram> step;
  std::optional<TaskOptions> options = {};  ///< nothing: the run's options
};

/// A host's next task, over the same connection, or over a new one if that is lost.
struct NextTask {
  /// Nothing: the next task depends on other hosts and is not known yet. The question is repeated
  /// after the pause, with the same result.
  std::optional<Task> task;
  std::chrono::milliseconds pause{0};  ///< the pause before the task or the next question
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
  host_key_unproven,  ///< a line of known_hosts that may be about the host cannot be read by dtool
  not_authenticated,
  timed_out,        ///< the command took longer than allowed
  connection_lost,  ///< the connection was lost while the command ran
  too_much_output,  ///< the command wrote more than is kept; the rest was not read
  not_started,      ///< the user interrupted dtool before this host's turn
  local_program,    ///< a step on this machine failed
  host_program,     ///< dtool-host could not be installed on the host, or does not run there
  unproven,         ///< the host answered, but the answer proves nothing: it is another host, say
  ended,            ///< dtool ended its command, or did not start it: another host failed
};

/// The failure's name as `--json` prints it: `host_key_unknown`.
std::string_view to_string(Failure failure);

/// What a host answered. A failing host is data, never an exception.
struct HostResult {
  Host host;
  /// The exit code of the command; 128 + signal if a signal ended it; -1 without an answer.
  int exit_code = -1;
  std::string out;               ///< standard output, if it is kept
  std::string err;               ///< standard error, likewise
  std::string log_in_said = {};  ///< output before dtool-host spoke, if that is kept
  Failure failure = Failure::none;
  std::string error;          ///< one sentence about `failure`
  std::string hint;           ///< the things that the user can do about it, or empty
  bool was_ended = false;     ///< dtool ended it because another host failed
  std::string host_key = {};  ///< the server's key, `ssh-ed25519 SHA256:…`; empty if unknown
  std::string address = {};   ///< the address that the configuration gives for an unreachable host,
                              ///< if it is another name
  /// The time from the beginning of this host's work to its answer, connecting and earlier tasks
  /// included.
  std::chrono::milliseconds elapsed{0};

  bool ok() const { return failure == Failure::none && exit_code == 0; }

  /// Exit code 1: the host answered, and the sentence says why the answer is not good.
  HostResult& fail(std::string sentence, std::string mend = {}) {
    exit_code = 1;
    error = std::move(sentence);
    hint = std::move(mend);
    return *this;
  }
  /// The same without an exit code.
  HostResult& fail(Failure why, std::string sentence, std::string mend = {}) {
    failure = why;
    error = std::move(sentence);
    hint = std::move(mend);
    return *this;
  }
};

/// In HostResult::hint it stands for the hosts that share the hint, in the form of --runs_on.
inline constexpr std::string_view kHostsInHint = "{hosts}";

enum class Stream { out, err };

/// What happens on hosts, told as it happens, on the thread that called Remote::run. Whoever
/// watches overrides some of it. A push and a pull (sync/) tell on_progress, on_silence, on_result
/// and on_interrupt.
struct Events {
  virtual ~Events() = default;
  /// Bytes as they came; not cut at lines. A HostError from here ends the host's task with that.
  virtual void on_output(std::size_t /*host*/, Stream /*stream*/, std::string_view /*bytes*/) {}
  /// So much is on its way: of the host's Command::input_from, or of a tree.
  virtual void on_progress(std::size_t /*host*/, const Transferred& /*sent*/) {}
  /// The host's next task after the result of its last one: another step that waits for no other
  /// host, or the same step again. Nothing: the result was the host's answer. Called after each
  /// task that was begun. After an interrupt no new task begins: the host's answer is then
  /// not_started, also for a question that was not settled.
  virtual std::optional<NextTask> next_task(std::size_t /*host*/, const HostResult& /*result*/) {
    return std::nullopt;
  }
  /// The host's answer: the result of its last task. Comes once for each.
  virtual void on_result(std::size_t /*host*/, const HostResult& /*result*/) {}
  /// Nothing was told for 3 s: these hosts have begun and have not answered. Comes again each
  /// second.
  virtual void on_silence(const std::vector<std::size_t>& /*waiting*/) {}
  /// The first SIGINT or SIGTERM came; `running` hosts have not answered.
  virtual void on_interrupt(const std::vector<std::size_t>& /*running*/) {}
};

/// What the first SIGINT does to hosts whose turn has come: wait for their answer, or leave them.
enum class OnInterrupt { finish, leave };

/// What the first host that fails does to the others' commands in login shells.
enum class OnFailure { go_on, end_others };

/// How one call of Remote::run behaves, and each of its tasks that has no options of its own.
struct RunOptions : TaskOptions {
  OnInterrupt on_interrupt = OnInterrupt::finish;
  OnFailure on_failure = OnFailure::go_on;
  std::optional<Host> failed = {};  ///< a host that failed before; end_others: nothing is begun
};

/// Many hosts. Connections open with a host's first task and stay for the next ones.
struct Remote {
  virtual ~Remote() = default;

  virtual const std::vector<Host>& hosts() const = 0;

  /// Runs all tasks, at most one per host and up to `width` at once, and the follow-up tasks that
  /// `events` names. Returns each host's last result, in the order of the tasks. A second
  /// SIGINT ends the wait: hosts without an answer get Failure::connection_lost.
  virtual std::vector<HostResult> run(std::vector<Task> tasks, Events& events,
                                      const RunOptions& options) = 0;

  /// Whether SIGINT or SIGTERM came since the start. After that no task is begun.
  virtual bool interrupted() const = 0;
};

// Turns requests to dtool-host (ssh/wire/protocol.h), dtool's program on the hosts, into commands
// for a Remote, and reads the replies from its results.

/// A command that makes dtool-host answer `request`. The result's `out` holds the frames of the
/// reply.
template <typename Request>
Command ask_host(const Request& request) {
  Command command;
  command.input = host::to_frame(request);
  command.run_by = RunBy::host_program;
  return command;
}

/// Whether a word of a host's may be an address: IPv4, IPv6 with its zone, or a name.
bool is_address(std::string_view text);

/// One frame of a result's output; the first is number 0. If there is no such frame, throws
/// host::BadMessage with the host's words.
host::Frame read_frame(const HostResult& result, std::size_t number = 0);

/// The one reply in a result. If there is none, throws host::BadMessage with the reason in one
/// sentence.
template <typename Reply>
Reply read_reply(const HostResult& result) {
  return host::open<Reply>(read_frame(result));
}

/// The one reply in a result. Nothing if the host failed; then `result` gets its error and hint.
template <typename Reply>
std::optional<Reply> reply_in(HostResult& result) {
  if (result.failure != Failure::none) return std::nullopt;
  try {
    return read_reply<Reply>(result);
  } catch (const host::BadMessage& error) {
    result.fail(error.what(), error.hint());
    return std::nullopt;
  }
}

}  // namespace dtool::ssh
