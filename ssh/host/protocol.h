// All that crosses between dtool and dtool-host, its program on the hosts: one request or more on
// standard input, the replies in the same order on standard output. Both ends compile this header;
// docs/protocol.md is about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

/// What a frame holds. A number keeps its meaning for ever.
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
  clock = 21,
  reach_reply = 22,
};

/// The largest body that a frame of that kind may have, in bytes; 0: there is no such kind.
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
    case Kind::clock:
    case Kind::reach_reply:
      return kSentences;
    case Kind::log_bytes:
    case Kind::kill_request:
    case Kind::kill_reply:
    case Kind::check_reply:
      return 4 * kMebibyte;
    case Kind::start_request:
    case Kind::status_request:
    case Kind::check_request:
      return 16 * kMebibyte;
    case Kind::status_reply:
      return 64 * kMebibyte;
  }
  return 0;
}

/// Instead of a reply: why there is none.
struct Fault {
  static constexpr Kind kKind = Kind::fault;
  std::string sentence;

  void fields(auto visit) { visit(sentence); }
};

/// End all that belongs to a run here, and look again.
struct KillRequest {
  static constexpr Kind kKind = Kind::kill_request;
  std::string run_id;                 ///< empty: sessions alone, as AllenAct's killfiles name them
  std::vector<std::string> sessions;  ///< names of screen sessions
  std::vector<std::string> state_folders;  ///< marked as killed first; `~/` is the home folder
  std::int64_t grace_ms = 5000;            ///< between TERM and KILL

  void fields(auto visit) { visit(run_id, sessions, state_folders, grace_ms); }
};

struct KillReply {
  static constexpr Kind kKind = Kind::kill_reply;
  std::int64_t ended = 0;           ///< processes that were there and are gone
  std::int64_t forced = 0;          ///< of them, those that TERM did not end
  std::vector<std::string> left;    ///< `pid command` of processes that are still there
  std::string cancelled;            ///< what a scheduler had of it and has no more: `job 12`
  std::string job_left;             ///< why a scheduler may still have some; empty: it has none
  std::string vouched_for;          ///< why nothing can be left on other hosts either; or empty
  std::string host;                 ///< who the host is, as killfiles::parse_identity reads it
  std::string no_folder;            ///< the run's folder, where it is not there; or empty
  std::string unmarked;             ///< a state folder that did not take the mark; or empty
  std::vector<std::string> unseen;  ///< what may be the run's work and cannot be told to be

  void fields(auto visit) {
    visit(ended, forced, left, cancelled, job_left, vouched_for, host, no_folder, unmarked, unseen);
  }
};

/// A file of a job's state folder.
struct File {
  std::string name;
  std::string content;

  void fields(auto visit) { visit(name, content); }
};

/// Start a job, unless kill was there first or it was started before. Paths may begin with `~/`.
struct StartRequest {
  static constexpr Kind kKind = Kind::start_request;
  std::string run_id;  ///< in the environment of every process of the job as DTOOL_RUN_ID
  std::string session;
  std::string state_folder;
  std::string log;
  bool has_fresh_log = false;  ///< what is in the log already goes away
  bool is_told = false;        ///< the script says by a file that its program begins
  std::string expected_host;   ///< as identify_host() says it; empty: any
  std::vector<File> files;     ///< `script` among them
  std::string begin;           ///< bash that defines `begin`, a launcher's own way; where that does
                               ///< not answer `started`, or it is empty, a session begins

  void fields(auto visit) {
    visit(run_id, session, state_folder, log, has_fresh_log, is_told, expected_host, files, begin);
  }
};

struct StartReply {
  static constexpr Kind kKind = Kind::start_reply;
  std::string error;    ///< why it does not run; empty: it does
  std::string started;  ///< its leader, as the file `process` has it, or what a scheduler said
  std::string job;      ///< the id that a scheduler gave it; or empty

  void fields(auto visit) { visit(error, started, job); }
};

/// A machine of a recorded run that is asked how it is. Paths may begin with `~/`.
struct StatusQuestion {
  std::string run_id;
  std::string state_folder;
  std::string log;
  std::string output_folder;  ///< empty: it has none

  void fields(auto visit) { visit(run_id, state_folder, log, output_folder); }
};

struct StatusRequest {
  static constexpr Kind kKind = Kind::status_request;
  bool is_brief = false;  ///< the state and what belongs to it; no processes, log or GPUs
  std::vector<StatusQuestion> machines;

  void fields(auto visit) { visit(is_brief, machines); }
};

/// How one machine's part of a run is doing. Ages are seconds by the host's own clock.
struct StatusAnswer {
  bool lacks_run_folder = false;
  std::optional<std::int64_t> pid;   ///< of the session's leader, where one was started
  std::optional<std::int64_t> up_s;  ///< where it runs
  bool was_rebooted = false;         ///< since its start
  bool is_killed = false;            ///< by dtool kill
  bool is_stopped = false;           ///< by the run's supervision
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> ended_s_ago;
  std::int64_t attempt = 0;
  std::string supervision;
  std::string cause;
  std::string node;             ///< that a scheduler chose; or empty
  std::string job;              ///< a scheduler's id; or empty
  std::string scheduler;        ///< its title; or empty
  std::string scheduler_state;  ///< by the names that its probe gives; empty: no scheduler has it
  std::string reason;           ///< a scheduler's
  std::int64_t processes = 0;
  std::optional<std::int64_t> cpu_percent;
  std::optional<std::int64_t> memory_bytes;  ///< resident, shared pages counted in each process
  std::string said;                          ///< what the launched program said of the whole run
  std::string last_line;                     ///< of the log
  std::vector<std::string> lines;            ///< the last ones, of a machine that failed
  std::string metrics;                       ///< the newest line of training in metrics.jsonl
  std::string validation;                    ///< the newest one of validation
  std::optional<std::int64_t> metrics_s_ago;
  std::string full_disk;          ///< where the disk of its log or state is mounted, if it is full
  std::vector<std::string> gpus;  ///< `index, use, memory, all memory` each

  void fields(auto visit) {
    visit(lacks_run_folder, pid, up_s, was_rebooted, is_killed, is_stopped, exit_code, ended_s_ago,
          attempt, supervision, cause, node, job, scheduler, scheduler_state, reason, processes,
          cpu_percent, memory_bytes, said, last_line, lines, metrics, validation, metrics_s_ago,
          full_disk, gpus);
  }
};

struct StatusReply {
  static constexpr Kind kKind = Kind::status_reply;
  std::string host;                    ///< as identify_host() says it
  std::vector<StatusAnswer> machines;  ///< in the order of the questions

  void fields(auto visit) { visit(host, machines); }
};

/// Send a job's log. The reply is a LogBegin, then LogBytes and LogBreaks, then a LogEnd.
struct LogRequest {
  static constexpr Kind kKind = Kind::log_request;
  std::string state_folder;
  std::string log;                     ///< where the killfile has it
  std::optional<std::uint64_t> lines;  ///< begin with so many lines before the end
  std::uint64_t offset = 0;            ///< else at this byte,
  std::string before;                  ///< before which these stand: tells the file by its content
  bool is_followed = false;            ///< as it grows, until the job has ended

  void fields(auto visit) { visit(state_folder, log, lines, offset, before, is_followed); }
};

struct LogBegin {
  static constexpr Kind kKind = Kind::log_begin;
  std::uint64_t offset = 0;  ///< of the first byte that follows
  bool is_lost = false;      ///< the place that was asked for is not there any more

  void fields(auto visit) { visit(offset, is_lost); }
};

struct LogBytes {
  static constexpr Kind kKind = Kind::log_bytes;
  std::string bytes;

  void fields(auto visit) { visit(bytes); }
};

/// The bytes that follow are of another file, or of this one from its beginning.
struct LogBreak {
  static constexpr Kind kKind = Kind::log_break;
  bool is_rotated = false;  ///< else it was truncated

  void fields(auto visit) { visit(is_rotated); }
};

struct LogEnd {
  static constexpr Kind kKind = Kind::log_end;
  /// Of a job that was followed: exited, stopped, killed, lost, unproven, or what a scheduler's
  /// probe says. Else empty.
  std::string state;
  std::int64_t exit_code = 0;

  void fields(auto visit) { visit(state, exit_code); }
};

/// Nothing new, once a second: a connection that is lost shows so.
struct StillHere {
  static constexpr Kind kKind = Kind::still_here;

  void fields(auto visit) { visit(); }
};

/// Which programs a host has to have beside the shell.
struct Wants {
  bool sync = false;    ///< a code tree is sent there
  bool session = true;  ///< screen or tmux: work goes on there after the log-in

  void fields(auto visit) { visit(sync, session); }
};

/// What a host lacks.
struct ProgramLacks {
  std::vector<std::string> programs;  ///< that are not there
  std::string old_bash;               ///< the version of a bash that is too old; or empty
  std::string screen_fault;           ///< what a screen that does not work says; or empty
  std::string lock_fault;             ///< `FOLDER: why` no file can be locked there; or empty
  bool has_terminal = true;           ///< screen or tmux is there, or neither is wanted
  std::string package_manager;        ///< `apt-get`; empty where nothing is lacking

  void fields(auto visit) {
    visit(programs, old_bash, screen_fault, lock_fault, has_terminal, package_manager);
  }
};

/// Look whether this host can run a machine's part of a run. Paths may begin with `~/`.
struct CheckRequest {
  static constexpr Kind kKind = Kind::check_request;
  Wants wants;
  bool is_survey = false;        ///< also tell what no run needs to know: versions, memory, disks
  std::string run_folder;        ///< is made; empty: none
  std::string code_folder;       ///< where the code will be
  bool code_must_exist = false;  ///< it is not going to be sent
  std::string environment;       ///< bash that readies the environment and answers what it finds
  bool wants_torchrun = false;
  std::string trainer;     ///< the launcher's own, tried first; empty: none is wanted
  std::string experiment;  ///< for the trainer to check; empty: none
  std::int64_t machines = 1;
  std::optional<std::int64_t> port;  ///< to look at; 0: find a free one; nothing: does not listen
  std::string peer;                  ///< an address of another machine, numeric; or empty

  void fields(auto visit) {
    visit(wants, is_survey, run_folder, code_folder, code_must_exist, environment, wants_torchrun,
          trainer, experiment, machines, port, peer);
  }
};

/// What no run needs to know of a host, and its user does. Sizes are in bytes.
struct Survey {
  std::string user;
  std::string shell;
  std::string system;  ///< `Debian GNU/Linux 12 (bookworm), x86_64`
  std::string bash;    ///< versions; empty where the program is missing
  std::string screen;
  std::string tmux;  ///< only where it takes the place of screen
  std::string rsync;
  bool has_ip = true;  ///< the program that names interfaces
  std::int64_t cores = 0;
  std::int64_t memory = 0;
  std::int64_t free_memory = 0;
  std::int64_t free_code = 0;  ///< on the disk where the code will be
  std::int64_t free_home = 0;
  std::vector<std::string> gpus;  ///< `NAME, MEMORY` each
  std::string driver;
  std::string gpu_fault;  ///< what nvidia-smi says where it fails

  void fields(auto visit) {
    visit(user, shell, system, bash, screen, tmux, rsync, has_ip, cores, memory, free_memory,
          free_code, free_home, gpus, driver, gpu_fault);
  }
};

struct CheckReply {
  static constexpr Kind kKind = Kind::check_reply;
  std::string host;  ///< as identify_host() says it
  ProgramLacks lacks;
  bool is_home_read_only = false;  ///< nothing can be written into ~/.dtool
  std::string missing_code;        ///< the code folder that should be there; or empty
  bool lacks_torchrun = false;
  std::string environment;            ///< `NAME=VALUE` lines that the request's bash answered
  bool is_environment_ready = false;  ///< that came to its end
  std::string trainer;                ///< its path; or empty
  std::string trainer_version;        ///< its first line
  std::string experiment_fault;       ///< what the trainer says of the experiment; or empty
  std::int64_t gpus = 0;
  bool is_port_taken = false;
  std::int64_t port = 0;              ///< that is free; 0: none was looked for
  std::int64_t coordinator_port = 0;  ///< another one
  std::string address;                ///< by which others reach this machine; or empty
  bool logout_kills = false;          ///< the system ends what a user leaves running at log-out
  std::optional<Survey> survey;

  void fields(auto visit) {
    visit(host, lacks, is_home_read_only, missing_code, lacks_torchrun, environment,
          is_environment_ready, trainer, trainer_version, experiment_fault, gpus, is_port_taken,
          port, coordinator_port, address, logout_kills, survey);
  }
};

/// Ready this host for a set-up script. Paths may begin with `~/`.
struct ReadyRequest {
  static constexpr Kind kKind = Kind::ready_request;
  std::string run_folder;  ///< is made; empty: no script will be run
  std::string public_key;  ///< a line for authorized_keys; or empty

  void fields(auto visit) { visit(run_folder, public_key); }
};

struct ReadyReply {
  static constexpr Kind kKind = Kind::ready_reply;
  std::string host;  ///< as identify_host() says it
  ProgramLacks lacks;
  std::string running;  ///< `RUN/MACHINE` of a set-up script that still runs; or empty
  std::string key;      ///< what became of the key: `added`, `present`; empty: none was given

  void fields(auto visit) { visit(host, lacks, running, key); }
};

/// Listen for a while where rank 0 will, as machine 0's session does.
struct ListenRequest {
  static constexpr Kind kKind = Kind::listen_request;
  std::string address;  ///< of this machine, to name its interface
  std::int64_t port = 0;
  std::string token;  ///< who connects has to know it, and so has who listens
  std::int64_t machines = 1;
  std::int64_t seconds = 0;  ///< then it ends by itself

  void fields(auto visit) { visit(address, port, token, machines, seconds); }
};

struct ListenReply {
  static constexpr Kind kKind = Kind::listen_reply;
  std::int64_t pid = 0;   ///< what listens, for who ends it earlier; 0: nothing does
  std::string fault;      ///< why
  std::string interface;  ///< that has the address; or empty

  void fields(auto visit) { visit(pid, fault, interface); }
};

/// Tell the clock, and try whether a ListenRequest's listener is reached. The reply is a HostClock,
/// then a ReachReply.
struct ReachRequest {
  static constexpr Kind kKind = Kind::reach_request;
  std::string address;  ///< empty: the clock alone
  std::int64_t port = 0;
  std::string token;
  std::int64_t place = 0;       ///< of this machine
  std::int64_t timeout_ms = 0;  ///< to wait for the answer

  void fields(auto visit) { visit(address, port, token, place, timeout_ms); }
};

struct HostClock {
  static constexpr Kind kKind = Kind::clock;
  std::int64_t nanoseconds = 0;  ///< since 1970

  void fields(auto visit) { visit(nanoseconds); }
};

struct ReachReply {
  static constexpr Kind kKind = Kind::reach_reply;
  bool is_reached = false;
  std::string fault;      ///< why not; or empty
  std::string interface;  ///< by which it goes; or empty

  void fields(auto visit) { visit(is_reached, fault, interface); }
};

}  // namespace dtool::host
