// SPDX-License-Identifier: MIT
// All messages between dtool and dtool-host, its program on the hosts: one or more requests on
// standard input, the replies in the same order on standard output. Both ends compile this header;
// docs/protocol.md explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

/// The kind of a frame. A number is never reused.
enum class Kind : std::uint16_t {
  fault = 1,
  kill_request = 2,
  kill_reply = 3,
  start_request = 4,
  start_reply = 5,
  status_request = 6,
  status_reply = 7,
  log_request = 8,
  log_begin = 9,
  log_bytes = 10,
  log_break = 11,
  log_end = 12,
  still_here = 13,
  check_request = 14,
  check_reply = 15,
  ready_request = 16,
  ready_reply = 17,
  listen_request = 18,
  listen_reply = 19,
  reach_request = 20,
  host_clock = 21,
  reach_reply = 22,
  tree_request = 30,
  tree_reply = 31,
  package_bytes = 32,
  names = 33,
  package_entry = 34,
  prepare_request = 35,
  prepare_reply = 36,
  prune_request = 37,
  prune_reply = 38,
  look_request = 39,
  look_reply = 40,
  tree_news = 41,
  selected_lines = 42,
  ranks_of_log = 43,
  freeze_request = 50,
  freeze_reply = 51,
  remove_request = 52,
  remove_reply = 53,
  python_request = 60,
  python_reply = 61,
  copy_request = 70,
  copy_reply = 71,
  copy_entry = 72,
  copy_piece = 73,
  copy_sum = 74,
  parcel_request = 75,
  parcel_reply = 76,
};

/// The largest body of a frame of that kind, in bytes; 0: no such kind.
constexpr std::uint32_t longest_body(Kind kind) {
  constexpr std::uint32_t kSentences = 64U << 10U;
  constexpr std::uint32_t kMebibyte = 1U << 20U;
  switch (kind) {
    case Kind::fault:
    case Kind::start_reply:
    case Kind::log_request:
    case Kind::log_begin:
    case Kind::log_break:
    case Kind::log_end:
    case Kind::still_here:
    case Kind::ready_request:
    case Kind::ready_reply:
    case Kind::listen_request:
    case Kind::listen_reply:
    case Kind::reach_request:
    case Kind::host_clock:
    case Kind::reach_reply:
    case Kind::tree_request:
    case Kind::prepare_request:
    case Kind::prepare_reply:
    case Kind::prune_request:
    case Kind::prune_reply:
    case Kind::look_request:
    case Kind::look_reply:
    case Kind::tree_news:
    case Kind::freeze_request:
    case Kind::freeze_reply:
    case Kind::remove_request:
    case Kind::remove_reply:
    case Kind::python_request:
    case Kind::python_reply:
    case Kind::copy_request:
    case Kind::copy_sum:
    case Kind::parcel_request:
      return kSentences;
    case Kind::package_bytes:
    case Kind::package_entry:
    case Kind::copy_entry:
    case Kind::copy_piece:
      return kMebibyte;
    case Kind::log_bytes:
    case Kind::selected_lines:
    case Kind::ranks_of_log:
    case Kind::kill_request:
    case Kind::kill_reply:
    case Kind::check_reply:
    case Kind::tree_reply:
    case Kind::names:
    case Kind::parcel_reply:
      return 4 * kMebibyte;
    case Kind::start_request:
    case Kind::status_request:
    case Kind::check_request:
      return 16 * kMebibyte;
    case Kind::status_reply:
    case Kind::copy_reply:
      return 64 * kMebibyte;
  }
  return 0;
}

/// Text of which a trace shows only the size: a secret, a script, a file's content, or what a
/// user's program wrote.
struct Hidden {
  std::string text;

  void fields(auto visit) { visit(text); }
};

/// Takes the place of a reply: the reason why there is none.
struct Fault {
  static constexpr Kind kKind = Kind::fault;
  std::string sentence;
  std::string hint = {};  ///< what the user can do about it; or empty

  void fields(auto visit) { visit(sentence, hint); }
};

/// End all that belongs to a run here, and look again.
struct KillRequest {
  static constexpr Kind kKind = Kind::kill_request;
  std::string run_id;                      ///< empty: only the sessions, as in AllenAct's killfiles
  std::vector<std::string> sessions;       ///< names of screen sessions
  std::vector<std::string> state_folders;  ///< marked as killed first; `~/` is the home folder
  std::int64_t grace_ms = 5000;            ///< between TERM and KILL

  void fields(auto visit) { visit(run_id, sessions, state_folders, grace_ms); }
};

struct KillReply {
  static constexpr Kind kKind = Kind::kill_reply;
  std::int64_t ended = 0;         ///< processes that existed and have ended
  std::int64_t forced = 0;        ///< how many of them TERM did not end
  std::vector<std::string> left;  ///< `pid command` of processes that still run
  std::string cancelled;          ///< jobs of a scheduler that were ended: `job 12`
  std::string job_left;     ///< why a scheduler may still have jobs of the run; empty: it has none
  std::string vouched_for;  ///< why nothing can be left on other hosts either; or empty
  std::string host;         ///< its identity, as identify_host() writes it
  std::string no_folder;    ///< the run's folder, if it is missing; or empty
  std::string unmarked;     ///< a state folder that could not be marked; or empty
  std::string locked;       ///< a state folder into which a start still writes; or empty
  std::vector<std::string> unseen;  ///< processes that may be the run's, without proof

  void fields(auto visit) {
    visit(ended, forced, left, cancelled, job_left, vouched_for, host, no_folder, unmarked, locked,
          unseen);
  }
};

/// A file of a job's state folder.
struct File {
  std::string name;
  Hidden content;

  void fields(auto visit) { visit(name, content); }
};

/// Start a job, unless kill came first or it was started before. Paths may begin with `~/`.
struct StartRequest {
  static constexpr Kind kKind = Kind::start_request;
  std::string run_id;  ///< in the environment of every process of the job as DTOOL_RUN_ID
  std::string session;
  std::string state_folder;
  std::string log;
  bool has_fresh_log = false;  ///< an earlier log is deleted
  bool is_told = false;        ///< the script reports by a file that its program begins
  std::string expected_host;   ///< its identity, as identify_host() writes it; empty: any
  std::vector<File> files;     ///< `script` among them
  Hidden begin;  ///< bash that defines `begin`, a launcher's own way to start; without it, or
                 ///< if it does not answer `started`, a session is started

  void fields(auto visit) {
    visit(run_id, session, state_folder, log, has_fresh_log, is_told, expected_host, files, begin);
  }
};

struct StartReply {
  static constexpr Kind kKind = Kind::start_reply;
  std::string error;    ///< why it does not run; empty: it does
  std::string started;  ///< its leader, as in the file `process`, or the scheduler's answer
  std::string job;      ///< the scheduler's id; or empty

  void fields(auto visit) { visit(error, started, job); }
};

/// Asks how one machine of a recorded run is doing. Paths may begin with `~/`.
struct StatusQuestion {
  std::string run_id;
  std::string state_folder;
  std::string log;
  std::string output_folder;  ///< empty: there is none

  void fields(auto visit) { visit(run_id, state_folder, log, output_folder); }
};

struct StatusRequest {
  static constexpr Kind kKind = Kind::status_request;
  bool is_brief = false;  ///< only the state and the members; no processes, log or GPUs
  std::vector<StatusQuestion> machines;

  void fields(auto visit) { visit(is_brief, machines); }
};

/// How one machine's part of a run is doing. Ages are in seconds by the host's clock.
struct StatusAnswer {
  bool lacks_run_folder = false;
  std::optional<std::int64_t> pid;   ///< of the session's leader, where one was started
  std::optional<std::int64_t> up_s;  ///< where it runs
  std::string terminal;              ///< `PID` of its screen, tmux or none; empty: it has ended
  bool was_rebooted = false;         ///< since its start
  bool is_killed = false;            ///< by dtool kill
  bool is_stopped = false;           ///< by the run's supervision
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> ended_s_ago;
  std::int64_t attempt = 0;
  std::string supervision;
  Hidden cause;
  std::optional<std::int64_t> cause_machine;  ///< that the cause names; or unknown
  std::optional<std::int64_t> cause_rank;     ///< likewise
  std::optional<std::int64_t> failed_rank;    ///< the rank of this machine that failed first
  std::string node;                           ///< node that a scheduler chose; or empty
  std::string job;                            ///< a scheduler's id; or empty
  std::string scheduler;                      ///< its title; or empty
  std::string scheduler_state;  ///< one of the names that its probe gives; empty: no scheduler has
                                ///< the job
  std::string reason;           ///< the scheduler's reason
  std::int64_t processes = 0;
  std::optional<std::int64_t> cpu_percent;
  std::optional<std::int64_t> memory_bytes;  ///< resident; shared pages count in each process
  Hidden said;                ///< what the launched program reported about the whole run
  Hidden last_line;           ///< of the log
  std::vector<Hidden> lines;  ///< the last lines of a failed machine
  Hidden metrics;             ///< newest line of training in metrics.jsonl
  Hidden validation;          ///< newest line of validation
  std::optional<std::int64_t> metrics_s_ago;
  std::string full_disk;  ///< mount point of the disk of its log or state, if the disk is full
  std::vector<std::string> gpus;  ///< `index, use, memory, total memory` each
  Hidden packages;  ///< of a machine that has ended: its python and the packages, a line each

  void fields(auto visit) {
    visit(lacks_run_folder, pid, up_s, terminal, was_rebooted, is_killed, is_stopped, exit_code,
          ended_s_ago, attempt, supervision, cause, cause_machine, cause_rank, failed_rank, node,
          job, scheduler, scheduler_state, reason, processes, cpu_percent, memory_bytes, said,
          last_line, lines, metrics, validation, metrics_s_ago, full_disk, gpus, packages);
  }
};

struct StatusReply {
  static constexpr Kind kKind = Kind::status_reply;
  std::string host;                    ///< its identity, as identify_host() writes it
  std::vector<StatusAnswer> machines;  ///< in the order of the questions

  void fields(auto visit) { visit(host, machines); }
};

/// Send a job's log. The reply is a LogBegin, then LogBytes (or SelectedLines, if ranks or a
/// pattern are named), RanksOfLog and LogBreaks, then a LogEnd.
struct LogRequest {
  static constexpr Kind kKind = Kind::log_request;
  std::string state_folder;
  std::string log;                     ///< path from the killfile
  std::optional<std::uint64_t> lines;  ///< begin that many lines before the end
  std::uint64_t offset = 0;            ///< else begin at this byte,
  Hidden before;             ///< if this text precedes it: recognises the file by its content
  bool is_followed = false;  ///< go on until the job has ended
  std::optional<std::int64_t> since_s;  ///< only lines from so many seconds ago on
  std::vector<std::int64_t> ranks;      ///< only lines of these; empty: all lines
  Hidden pattern;  ///< only lines that match this POSIX extended regular expression; empty: all

  void fields(auto visit) {
    visit(state_folder, log, lines, offset, before, is_followed, since_s, ranks, pattern);
  }
};

struct LogBegin {
  static constexpr Kind kKind = Kind::log_begin;
  std::uint64_t offset = 0;  ///< of the first byte that follows
  bool is_lost = false;      ///< the requested place no longer exists
  std::string host = {};     ///< its identity, as identify_host() writes it

  void fields(auto visit) { visit(offset, is_lost, host); }
};

struct LogBytes {
  static constexpr Kind kKind = Kind::log_bytes;
  Hidden bytes;

  void fields(auto visit) { visit(bytes); }
};

/// Whole lines that the request selects, and how far the log was looked through.
struct SelectedLines {
  static constexpr Kind kKind = Kind::selected_lines;
  Hidden lines;
  std::uint64_t offset = 0;  ///< behind the last line that was looked at
  Hidden before;             ///< the bytes before that place, as in LogRequest

  void fields(auto visit) { visit(lines, offset, before); }
};

/// The ranks whose lines are in the log, and whether their lines have marks (`r3: `). Comes before
/// the first marked line, and again when there are more ranks.
struct RanksOfLog {
  static constexpr Kind kKind = Kind::ranks_of_log;
  std::vector<std::int64_t> ranks;
  bool are_marked = false;

  void fields(auto visit) { visit(ranks, are_marked); }
};

/// The following bytes are from another file, or from this one's beginning.
struct LogBreak {
  static constexpr Kind kKind = Kind::log_break;
  bool is_rotated = false;  ///< else it was truncated

  void fields(auto visit) { visit(is_rotated); }
};

struct LogEnd {
  static constexpr Kind kKind = Kind::log_end;
  /// State of a job that was followed: exited, stopped, killed, lost, unproven, or a scheduler's
  /// word. Else empty.
  std::string state;
  std::int64_t exit_code = 0;

  void fields(auto visit) { visit(state, exit_code); }
};

/// Sent once a second while there is nothing new, so that a lost connection is noticed.
struct StillHere {
  static constexpr Kind kKind = Kind::still_here;

  void fields(auto visit) { visit(); }
};

/// The programs that a host needs besides the shell.
struct Wants {
  bool sync = false;    ///< a code tree is sent there
  bool session = true;  ///< screen or tmux: work continues there after the login ends

  void fields(auto visit) { visit(sync, session); }
};

/// What a host lacks.
struct ProgramLacks {
  std::vector<std::string> programs;  ///< missing programs
  std::string old_bash;               ///< version of a bash that is too old; or empty
  std::string screen_fault;           ///< error of a screen that does not work; or empty
  std::string lock_fault;             ///< `FOLDER: why` files cannot be locked there; or empty
  bool has_terminal = true;           ///< screen or tmux exists, or neither is needed
  std::string package_manager;        ///< `apt-get`; empty if nothing is missing

  void fields(auto visit) {
    visit(programs, old_bash, screen_fault, lock_fault, has_terminal, package_manager);
  }
};

/// The variables that say which GPUs a process sees; nothing where the run's user gave none.
struct VisibleGpus {
  std::optional<std::string> cuda;  ///< CUDA_VISIBLE_DEVICES
  std::optional<std::string> rocr;  ///< ROCR_VISIBLE_DEVICES
  std::optional<std::string> hip;   ///< HIP_VISIBLE_DEVICES

  void fields(auto visit) { visit(cuda, rocr, hip); }
};

/// The PyTorch of an environment.
struct PyTorch {
  std::string
      folder;  ///< `/home/ann/venv/lib/python3.11/site-packages/torch`; empty: there is none
  std::string version;  ///< `2.11.0+cu130`; empty: it cannot be read

  void fields(auto visit) { visit(folder, version); }
};

/// Check whether this host can run a machine's part of a run. Paths may begin with `~/`.
struct CheckRequest {
  static constexpr Kind kKind = Kind::check_request;
  Wants wants;
  bool is_survey = false;        ///< also report facts that no run needs: versions, memory, disks
  std::string run_folder;        ///< created; empty: none
  std::string code_folder;       ///< folder for the code
  bool code_must_exist = false;  ///< the code will not be sent
  Hidden environment;            ///< bash that prepares the environment and answers what it finds
  bool wants_torchrun = false;
  std::string trainer;          ///< the launcher's own trainer, tried first; empty: none is needed
  std::string trainer_version;  ///< which is wanted: `0.2.0`
  std::string bundle;           ///< hash of a trainer bundle, tried last; empty: none
  std::string bundle_pytorch;  ///< version of the PyTorch whose LibTorch it uses; empty: it has one
  Hidden experiment;           ///< for the trainer to check; empty: none
  std::int64_t machines = 1;
  std::optional<std::int64_t> port;  ///< port to check; 0: find a free one; nothing: this machine
                                     ///< does not listen
  bool is_supervised = false;        ///< this machine's session will listen for the others, too
  std::string peer;                  ///< an address of another machine, numeric; or empty
  VisibleGpus visible_gpus;          ///< of the run
  std::string gpus;                  ///< the list of --gpus, all of which must be there; or empty

  void fields(auto visit) {
    visit(wants, is_survey, run_folder, code_folder, code_must_exist, environment, wants_torchrun,
          trainer, trainer_version, bundle, bundle_pytorch, experiment, machines, port,
          is_supervised, peer, visible_gpus, gpus);
  }
};

/// What a host computes with. Sizes are in bytes.
struct Hardware {
  std::int64_t cores = 0;
  std::int64_t memory = 0;
  std::vector<std::string> gpus;  ///< `NAME, MEMORY` each
  std::string driver;             ///< of NVIDIA's GPUs
  std::string gpu_fault;          ///< error of nvidia-smi; or empty

  void fields(auto visit) { visit(cores, memory, gpus, driver, gpu_fault); }
};

/// Facts about a host that no run needs but its user wants to know. Sizes are in bytes.
struct Survey {
  std::string user;
  std::string shell;
  std::string system;  ///< `Debian GNU/Linux 12 (bookworm), x86_64`
  std::string bash;    ///< versions; empty if the program is missing
  std::string screen;
  std::string tmux;  ///< only if it replaces screen
  std::string rsync;
  std::int64_t free_memory = 0;
  std::int64_t free_code = 0;  ///< on the disk of the code folder
  std::int64_t free_home = 0;

  void fields(auto visit) {
    visit(user, shell, system, bash, screen, tmux, rsync, free_memory, free_code, free_home);
  }
};

struct CheckReply {
  static constexpr Kind kKind = Kind::check_reply;
  std::string host;  ///< its identity, as identify_host() writes it
  ProgramLacks lacks;
  bool is_home_read_only = false;  ///< nothing can be written to ~/.dtool
  std::string missing_code;        ///< the code folder that should exist but does not; or empty
  bool lacks_torchrun = false;
  std::string environment;            ///< `NAME=VALUE` lines, answers of the request's bash
  bool is_environment_ready = false;  ///< that bash ran to its end
  std::string trainer;                ///< its path; or empty
  std::string trainer_version;        ///< its first line
  bool is_trainer_fit = false;        ///< is of this version and has its libraries here
  std::string missing_libraries;  ///< that this trainer needs: `libc10.so, GLIBC_2.38`; or empty
  std::string processor;          ///< `x86_64`; empty: the trainer is fit, or none is needed
  std::string libc;               ///< `glibc 2.36`, likewise; empty also for another libc
  PyTorch pytorch;                ///< whose LibTorch the trainer uses; without a fit trainer the
                                  ///< environment's; or empty
  std::string experiment_fault;   ///< what the trainer says against the experiment; or empty
  Hardware hardware;
  std::int64_t gpus = 0;  ///< that the run's processes will see
  std::string gpu_lack;   ///< why the request's list of GPUs does not fit this machine; or empty
  bool is_port_taken = false;
  bool lacks_port = false;            ///< none of the ports that dtool takes is free
  std::int64_t port = 0;              ///< a free port; 0: none was wanted, or none is free
  std::int64_t coordinator_port = 0;  ///< another free port
  std::string address;                ///< this machine's address for others; or empty
  bool logout_kills = false;          ///< the system ends a user's processes at logout
  std::optional<Survey> survey;

  void fields(auto visit) {
    visit(host, lacks, is_home_read_only, missing_code, lacks_torchrun, environment,
          is_environment_ready, trainer, trainer_version, is_trainer_fit, missing_libraries,
          processor, libc, pytorch, experiment_fault, hardware, gpus, gpu_lack, is_port_taken,
          lacks_port, port, coordinator_port, address, logout_kills, survey);
  }
};

/// Which Python is there, and whether it has an environment that dtool builds
/// (cli/run/host/python_environment.h).
struct PythonRequest {
  static constexpr Kind kKind = Kind::python_request;
  std::string environment;  ///< its hash; empty: only the Python is asked for
  bool builds = false;      ///< it is built from its packages, which were sent, if it is not there
  bool is_conda = false;    ///< its packages are conda's, not wheels

  void fields(auto visit) { visit(environment, builds, is_conda); }
};

struct PythonReply {
  static constexpr Kind kKind = Kind::python_reply;
  std::string version;    ///< of python3: `3.11`; empty: there is none that dtool can use
  std::string processor;  ///< `x86_64`
  std::string libc;       ///< `glibc 2.36`
  std::string kernel;     ///< `5.10`
  std::int64_t cuda = 0;  ///< what NVIDIA's driver can do: 12040 is CUDA 12.4; 0: there is none
  bool is_built = false;  ///< the environment is there, whole
  std::string fault;      ///< why it could not be built; or empty

  void fields(auto visit) { visit(version, processor, libc, kernel, cuda, is_built, fault); }
};

/// Prepare this host for a set-up script. Paths may begin with `~/`.
struct ReadyRequest {
  static constexpr Kind kKind = Kind::ready_request;
  std::string run_folder;  ///< created; empty: no script will be run
  std::string public_key;  ///< a line for authorized_keys; or empty

  void fields(auto visit) { visit(run_folder, public_key); }
};

struct ReadyReply {
  static constexpr Kind kKind = Kind::ready_reply;
  std::string host;  ///< its identity, as identify_host() writes it
  ProgramLacks lacks;
  std::string running;  ///< `RUN/MACHINE` of a set-up script that still runs; or empty
  std::string key;      ///< `added` or `present`; empty: no key was given

  void fields(auto visit) { visit(host, lacks, running, key); }
};

/// Listen for a while at rank 0's address, as machine 0's session does.
struct ListenRequest {
  static constexpr Kind kKind = Kind::listen_request;
  std::string address;  ///< of this machine, to find its interface
  std::int64_t port = 0;
  Hidden token;  ///< shared secret: both sides must know it
  std::int64_t machines = 1;
  std::int64_t seconds = 0;  ///< ends by itself after this

  void fields(auto visit) { visit(address, port, token, machines, seconds); }
};

struct ListenReply {
  static constexpr Kind kKind = Kind::listen_reply;
  std::int64_t pid = 0;   ///< of the listening process, to end it earlier; 0: nothing listens
  std::string fault;      ///< why nothing listens
  std::string interface;  ///< interface with the address; or empty

  void fields(auto visit) { visit(pid, fault, interface); }
};

/// Report the clock, and try to reach a ListenRequest's listener. The reply is a HostClock, then a
/// ReachReply.
struct ReachRequest {
  static constexpr Kind kKind = Kind::reach_request;
  std::string address;  ///< empty: only the clock
  std::int64_t port = 0;
  Hidden token;
  std::int64_t place = 0;       ///< of this machine
  std::int64_t timeout_ms = 0;  ///< for the answer

  void fields(auto visit) { visit(address, port, token, place, timeout_ms); }
};

struct HostClock {
  static constexpr Kind kKind = Kind::host_clock;
  std::int64_t nanoseconds = 0;  ///< since 1970

  void fields(auto visit) { visit(nanoseconds); }
};

struct ReachReply {
  static constexpr Kind kKind = Kind::reach_reply;
  bool is_reached = false;
  std::string fault;      ///< why it was not reached; or empty
  std::string interface;  ///< interface of the route; or empty

  void fields(auto visit) { visit(is_reached, fault, interface); }
};

/// Lets a host recognise the very folder that is sent, if it can see it.
struct TreeRoot {
  std::string boot;  ///< of the launcher's machine
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t file_system = 0;  ///< as statfs has it
  std::string first;              ///< the tree's first file,
  std::string first_identity;     ///< and how the host would see it if it is the same file

  void fields(auto visit) { visit(boot, device, inode, file_system, first, first_identity); }
};

/// What a host does with a package that hosts pass on to each other.
struct RelayPart {
  /// The host that it gets the package from.
  struct Parent {
    std::string address;  ///< numeric
    std::uint16_t port = 0;
    Hidden secret;  ///< this host proves to it that it knows this
    std::uint64_t size = 0;
    std::string sha256;  ///< of the sealed bytes, in hex

    void fields(auto visit) { visit(address, port, secret, size, sha256); }
  };
  Hidden key;                    ///< key that seals the package
  Hidden secret;                 ///< for the hosts that this one serves; empty: it serves none
  std::optional<Parent> parent;  ///< nothing: the package follows the request
  std::int64_t serves_s = 600;   ///< how long it serves the others once it has the whole package

  void fields(auto visit) { visit(key, secret, parent, serves_s); }
};

/// The folder in which a run's processes work: `tree` in the run's folder, a copy of the code.
struct OwnTree {
  std::string run_folder;  ///< must be there; may begin with `~/`
  std::string outputs;     ///< a path from the code folder: the copy has a link to it; or empty
  std::string written;     ///< the folder that keeps what the processes wrote in the copy
  /// The code folder, to which the copy's links lead; empty: it is the folder with the tree. If one
  /// is named, the folder with the tree is dtool's own, and dtool deletes it when it is old.
  std::string code = {};

  void fields(auto visit) { visit(run_folder, outputs, written, code); }
};

/// Two messages in one. The question (`is_asked` is not set): report how much of a code tree a
/// folder has, and unpack the guessed package that may follow if the folder has its basis. After
/// the answer (`is_asked` is set): unpack the package that follows. A package is a series of frames
/// of Kind::package_bytes, the last one empty.
struct TreeRequest {
  static constexpr Kind kKind = Kind::tree_request;
  std::string folder;  ///< absolute, or from `~/`; made where it is missing
  std::string tree;    ///< its fingerprint
  bool is_asked = false;

  // Only in the question:
  TreeRoot root;
  std::string push;  ///< hosts of the push that share the folder recognise each other by this; or
                     ///< empty
  std::int64_t host = 0;       ///< its number in the push
  std::optional<OwnTree> own;  ///< once the tree is whole here, make the run a copy of it

  // About the package:
  bool has_package = false;
  bool is_compressed = false;
  std::string basis;                   ///< the tree that the package builds on; empty: none
  bool refuses_foreign = false;        ///< refuse files that have names of the tree, are not from
                                       ///< dtool, and differ
  std::int64_t patience_ms = 300'000;  ///< how long to wait for more bytes of the package
  std::optional<RelayPart> relay;      ///< never in the question

  void fields(auto visit) {
    visit(folder, tree, is_asked, root, push, host, own, has_package, is_compressed, basis,
          refuses_foreign, patience_ms, relay);
  }
};

/// Sent by a host that passes a package on while it receives it.
struct TreeNews {
  static constexpr Kind kKind = Kind::tree_news;
  bool listens = false;     ///< listens from now on; without an address it never will
  std::string address;      ///< where other hosts find it,
  std::uint16_t port = 0;   ///< and at which port
  std::uint64_t bytes = 0;  ///< received from another host so far

  void fields(auto visit) { visit(listens, address, port, bytes); }
};

/// The result of unpacking a package.
struct Unpacked {
  bool is_whole = false;
  std::int64_t removed = 0;  ///< files that the tree no longer has
  std::string broken;        ///< why the package is incomplete
  std::int64_t foreign = 0;  ///< files that are not from dtool and differ: nothing was changed
  std::vector<std::string> first;  ///< names of the first few
  std::string folder;              ///< the folder with them
  std::string missed;              ///< why another host did not send the package; or empty
  bool is_spoilt = false;          ///< the other host sent wrong bytes

  void fields(auto visit) {
    visit(is_whole, removed, broken, foreign, first, folder, missed, is_spoilt);
  }
};

/// How much of a tree a folder has. If none of is_same_folder, is_whole, is_empty, basis, holder
/// and unpacked is set, the content is unknown.
struct TreeReply {
  static constexpr Kind kKind = Kind::tree_reply;
  bool is_same_folder = false;         ///< it is the tree's own folder: there is nothing to do
  bool is_whole = false;               ///< it has the whole tree, unchanged since it was sent
  bool is_empty = false;               ///< it is empty
  std::string basis;                   ///< an earlier tree that it has whole and unchanged
  std::optional<std::int64_t> holder;  ///< another host of the push that is handling the folder
  std::optional<Unpacked> unpacked;    ///< set if the folder had the package's basis
  bool reads_zstd = false;             ///< a package may be compressed

  void fields(auto visit) {
    visit(is_same_folder, is_whole, is_empty, basis, holder, unpacked, reads_zstd);
  }
};

/// In a package: names of files. The files that the tree no longer has or, for PrepareRequest, all
/// files.
struct Names {
  static constexpr Kind kKind = Kind::names;
  std::vector<std::string> names;

  void fields(auto visit) { visit(names); }
};

/// In a package: a file, a link, or a folder (its name ends with a slash). Names are sorted. If
/// `content` is shorter than `size`, the rest follows in frames of Kind::package_bytes.
struct PackageEntry {
  static constexpr Kind kKind = Kind::package_entry;
  std::string name;
  std::uint64_t mode = 0;
  std::int64_t seconds = 0;  ///< of its last change
  std::int64_t nanoseconds = 0;
  std::string target;  ///< of a link; else empty
  std::uint64_t size = 0;
  Hidden content;

  void fields(auto visit) { visit(name, mode, seconds, nanoseconds, target, size, content); }
};

/// Prepare a folder for rsync. The tree's Names follow as a package.
struct PrepareRequest {
  static constexpr Kind kKind = Kind::prepare_request;
  std::string folder;
  std::string tree;
  bool refuses_foreign = false;  ///< do nothing if there are files that are not as dtool sent them
  bool is_compressed = false;    ///< the package
  std::int64_t patience_ms = 300'000;

  void fields(auto visit) { visit(folder, tree, refuses_foreign, is_compressed, patience_ms); }
};

struct PrepareReply {
  static constexpr Kind kKind = Kind::prepare_reply;
  std::string lock;  ///< the file that rsync must lock; it holds the fingerprint
  /// A file that lists those of the tree's files that are there and are not as dtool sent them;
  /// empty: there are none, or they may be overwritten.
  std::string foreign;
  /// The number of files that are not as dtool sent them and would be deleted, and the first names.
  std::int64_t lost = 0;
  std::vector<std::string> first_lost = {};

  void fields(auto visit) { visit(lock, foreign, lost, first_lost); }
};

/// After rsync: delete dtool's files that the tree no longer has, and note whether the tree is
/// complete.
struct PruneRequest {
  static constexpr Kind kKind = Kind::prune_request;
  std::string folder;
  std::string tree;
  std::string digest;     ///< of all files that should exist
  bool was_sent = false;  ///< else nothing was sent, and only the marker of the folder is removed
  std::optional<OwnTree> own;  ///< make the run a copy of the tree

  void fields(auto visit) { visit(folder, tree, digest, was_sent, own); }
};

struct PruneReply {
  static constexpr Kind kKind = Kind::prune_reply;
  std::int64_t removed = 0;

  void fields(auto visit) { visit(removed); }
};

/// Make the run a copy of a tree that is not sent, since the folder is the launcher's own. The
/// tree's Names follow as a package.
struct FreezeRequest {
  static constexpr Kind kKind = Kind::freeze_request;
  std::string folder;
  std::string digest;  ///< of all files, as PruneRequest has it: what is copied must be this
  OwnTree own;
  bool is_compressed = false;  ///< the package
  std::int64_t patience_ms = 300'000;

  void fields(auto visit) { visit(folder, digest, own, is_compressed, patience_ms); }
};

struct FreezeReply {
  static constexpr Kind kKind = Kind::freeze_reply;

  void fields(auto visit) { visit(); }
};

/// Delete a run's own tree, and the run's folder if nothing else is in it.
struct RemoveRequest {
  static constexpr Kind kKind = Kind::remove_request;
  std::string run_id;
  bool with_state = false;  ///< delete the run's folder with all that is in it

  void fields(auto visit) { visit(run_id, with_state); }
};

struct RemoveReply {
  static constexpr Kind kKind = Kind::remove_reply;
  bool had_tree = false;
  std::string
      kept;  ///< a folder with the files that the run's processes wrote in the tree; or empty

  void fields(auto visit) { visit(had_tree, kept); }
};

/// Check whether a folder, or a file in it, can be fetched.
struct LookRequest {
  static constexpr Kind kKind = Kind::look_request;
  std::string folder;
  std::string file;    ///< empty: the folder
  std::string run_id;  ///< first put there what its processes wrote in their tree; or empty

  void fields(auto visit) { visit(folder, file, run_id); }
};

struct LookReply {
  static constexpr Kind kKind = Kind::look_reply;
  std::string identity;   ///< hosts that answer alike share the folder
  std::string host = {};  ///< its identity, as identify_host() writes it

  void fields(auto visit) { visit(identity, host); }
};

/// What all requests of one `dtool copy` to a host share.
struct CopyPlace {
  std::string folder;      ///< absolute, or from `~/`
  std::string copy;        ///< name of the copy
  std::int64_t round = 0;  ///< of the copy: each begins with the question what is lacking
  std::int64_t host = 0;   ///< its number in the copy
  std::string launcher;    ///< the process that copies, in words that only launchers read
  std::string takes_over;  ///< the process whose copy to the folder has ended; empty: none

  void fields(auto visit) { visit(folder, copy, round, host, launcher, takes_over); }
};

/// A file, a link, or a folder (its name ends with a slash) that is copied.
struct CopyEntry {
  static constexpr Kind kKind = Kind::copy_entry;
  std::string name;  ///< below the folder
  std::uint64_t mode = 0;
  std::int64_t seconds = 0;  ///< of its last change
  std::int64_t nanoseconds = 0;
  std::string target;  ///< of a link; else empty
  std::uint64_t size = 0;
  std::string sha256;  ///< of a file, in hex; empty: not known yet

  void fields(auto visit) { visit(name, mode, seconds, nanoseconds, target, size, sha256); }
};

/// How much of the listing that follows (CopyEntries in a package, sorted by name) does a folder
/// have? Nothing is written, unless `settles` is set and nothing is lacking: then modes and times
/// are set, and what the copy left aside is deleted.
struct CopyRequest {
  static constexpr Kind kKind = Kind::copy_request;
  CopyPlace place;
  bool settles = false;
  bool is_compressed = false;  ///< the listing
  std::int64_t patience_ms = 300'000;

  void fields(auto visit) { visit(place, settles, is_compressed, patience_ms); }
};

/// Places in a listing that follow each other.
struct EntryRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  void fields(auto visit) { visit(first, count); }
};

/// A file of which a part came before.
struct CopyPart {
  std::uint64_t entry = 0;  ///< its place in the listing
  std::uint64_t bytes = 0;

  void fields(auto visit) { visit(entry, bytes); }
};

struct CopyReply {
  static constexpr Kind kKind = Kind::copy_reply;
  std::vector<EntryRun> lacks;       ///< entries that are not there
  std::vector<CopyPart> parts;       ///< of those, the ones of which a part is there
  std::vector<EntryRun> unsure;      ///< files of the same size and another time, with no sha256
  bool is_unsettled = false;         ///< modes or times differ, or something is left aside
  std::vector<std::string> blocked;  ///< why some names cannot be written; the first few
  std::uint64_t needed = 0;          ///< bytes on disk for what is lacking
  std::uint64_t free = 0;            ///< bytes that this user may still write there
  std::string folder;                ///< the folder's path
  std::string owner;  ///< launcher of another copy that is writing there, as it said; or empty
  bool reads_zstd = false;

  void fields(auto visit) {
    visit(lacks, parts, unsure, is_unsettled, blocked, needed, free, folder, owner, reads_zstd);
  }
};

/// Take a part of what is lacking, at most some hundred megabytes. A package follows, or comes from
/// another host: for each range of a file a CopyPiece, its bytes in frames of Kind::package_bytes,
/// and behind the file's last range a CopySum. Folders and links have no bytes.
struct ParcelRequest {
  static constexpr Kind kKind = Kind::parcel_request;
  CopyPlace place;
  bool is_compressed = false;
  std::int64_t patience_ms = 300'000;
  std::optional<RelayPart> relay;

  void fields(auto visit) { visit(place, is_compressed, patience_ms, relay); }
};

struct CopyPiece {
  static constexpr Kind kKind = Kind::copy_piece;
  CopyEntry entry;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  void fields(auto visit) { visit(entry, offset, bytes); }
};

struct CopySum {
  static constexpr Kind kKind = Kind::copy_sum;
  std::string sha256;  ///< of the whole file, in hex

  void fields(auto visit) { visit(sha256); }
};

struct ParcelReply {
  static constexpr Kind kKind = Kind::parcel_reply;
  std::optional<std::int64_t> holder;  ///< another host of the copy that writes into the folder
  std::vector<std::string> spoilt;     ///< files whose SHA-256 was wrong: they are deleted
  std::string missed;                  ///< why another host did not send the parcel; or empty
  bool is_spoilt = false;              ///< the other host sent wrong bytes

  void fields(auto visit) { visit(holder, spoilt, missed, is_spoilt); }
};

}  // namespace dtool::host
