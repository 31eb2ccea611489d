// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about what a host has and lacks for a
// run, a set-up script or an environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/wire/protocol.h"

namespace dtool::host {

/// The programs that a host needs besides the shell.
struct Wants {
  bool session = true;  ///< screen or tmux: work continues there after the login ends

  void fields(auto visit) { visit(session); }
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
  std::string output_folder;     ///< the output folder of the run; empty: it has none
  Hidden environment;            ///< bash that prepares the environment and answers what it finds
  bool wants_torchrun = false;
  std::string trainer;          ///< the launcher's own trainer, tried first; empty: none is needed
  std::string trainer_version;  ///< the version that is wanted: `0.2.0`
  std::string bundle;           ///< hash of a trainer bundle, tried last; empty: none
  std::string bundle_pytorch;  ///< version of the PyTorch whose LibTorch it uses; empty: it has one
  Hidden experiment;           ///< the experiment for the trainer to check; empty: none
  std::int64_t machines = 1;
  std::optional<std::int64_t> port;  ///< port to check; 0: find a free one; nothing: this machine
                                     ///< does not listen
  bool is_supervised = false;        ///< this machine's session will listen for the others, too
  std::string peer;                  ///< an address of another machine, numeric; or empty
  VisibleGpus visible_gpus;          ///< the visible GPUs of the run
  std::string gpus;                  ///< the list of --gpus, all of which must be there; or empty

  void fields(auto visit) {
    visit(wants, is_survey, run_folder, code_folder, code_must_exist, output_folder, environment,
          wants_torchrun, trainer, trainer_version, bundle, bundle_pytorch, experiment, machines,
          port, is_supervised, peer, visible_gpus, gpus);
  }
};

/// What a host computes with. Sizes are in bytes.
struct Hardware {
  std::int64_t cores = 0;
  std::int64_t memory = 0;
  std::vector<std::string> gpus;  ///< `NAME, MEMORY` each
  std::string driver;             ///< the driver of NVIDIA's GPUs
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
  std::string own_name;  ///< the loopback address that /etc/hosts gives the host's name; or empty
  std::int64_t free_memory = 0;
  std::int64_t free_code = 0;  ///< the free bytes on the disk of the code folder
  std::int64_t free_home = 0;

  void fields(auto visit) {
    visit(user, shell, system, bash, screen, tmux, rsync, own_name, free_memory, free_code,
          free_home);
  }
};

struct CheckReply {
  static constexpr Kind kKind = Kind::check_reply;
  std::string host;  ///< its identity, as identify_host() writes it
  ProgramLacks lacks;
  bool is_home_read_only = false;  ///< nothing can be written to ~/.dtool
  std::optional<std::uint32_t> few_inodes =
      {};                    ///< so many more files are possible there: too few for a run
  std::string missing_code;  ///< the code folder that should exist but does not; or empty
  std::string stranger;      ///< the other user who decides what is in the run's folders; or empty
  bool lacks_torchrun = false;
  std::string environment;            ///< `NAME=VALUE` lines, answers of the request's bash
  bool is_environment_ready = false;  ///< the request's bash ran to its end
  std::string trainer;                ///< its path; or empty
  std::string trainer_version;        ///< its first line
  bool is_trainer_fit = false;        ///< is of this version and has its libraries here
  /// The missing libraries that this trainer needs: `libc10.so, GLIBC_2.38`; or empty.
  std::string missing_libraries;
  std::string processor;  ///< `x86_64`; empty: the trainer is fit, or none is needed
  std::string libc;       ///< `glibc 2.36`, likewise; empty also for another libc
  /// The PyTorch whose LibTorch the trainer uses; without a fit trainer the environment's; or
  /// empty.
  PyTorch pytorch;
  std::string experiment_fault;  ///< the trainer's words against the experiment; or empty
  Hardware hardware;
  std::int64_t gpus = 0;  ///< the number of GPUs that the run's processes will see
  std::string gpu_lack;   ///< why the request's list of GPUs does not fit this machine; or empty
  bool is_port_taken = false;
  bool lacks_port = false;            ///< no port is free of those that dtool takes
  std::int64_t port = 0;              ///< a free port; 0: none was wanted, or none is free
  std::int64_t coordinator_port = 0;  ///< another free port
  std::string address;                ///< this machine's address for others; or empty
  bool logout_kills = false;          ///< the system ends a user's processes at logout
  std::vector<std::string> runs;      ///< others of this user's that go on here; ids of any form
  std::optional<Survey> survey;

  void fields(auto visit) {
    visit(host, lacks, is_home_read_only, few_inodes, missing_code, stranger, lacks_torchrun,
          environment, is_environment_ready, trainer, trainer_version, is_trainer_fit,
          missing_libraries, processor, libc, pytorch, experiment_fault, hardware, gpus, gpu_lack,
          is_port_taken, lacks_port, port, coordinator_port, address, logout_kills, runs, survey);
  }
};

/// Which Python is there, and whether it has an environment that dtool builds
/// (ssh/host/answers/python_environment.h).
struct PythonRequest {
  static constexpr Kind kKind = Kind::python_request;
  std::string environment;   ///< its hash; empty: only the Python is asked for
  bool builds = false;       ///< it is built from its packages, which were sent, if it is not there
  bool is_conda = false;     ///< its packages are conda's, not for a virtual environment
  bool sees_system = false;  ///< it leads to the host's own packages, too

  void fields(auto visit) { visit(environment, builds, is_conda, sees_system); }
};

struct PythonReply {
  static constexpr Kind kKind = Kind::python_reply;
  /// The version of python3: `3.11.2`; empty: there is none that dtool can use.
  std::string version;
  std::string processor;  ///< `x86_64`
  std::string libc;       ///< `glibc 2.36`
  std::string kernel;     ///< `5.10`
  /// The CUDA that NVIDIA's driver can do: 12040 is CUDA 12.4; 0: there is none.
  std::int64_t cuda = 0;
  bool is_built = false;  ///< the environment is there, whole
  std::string fault;      ///< why it could not be built, or how it was changed since; or empty
  std::string packages;   ///< lines `NAME==VERSION`: with `sees_system` all of the host's own, else
                          ///< torch

  void fields(auto visit) {
    visit(version, processor, libc, kernel, cuda, is_built, fault, packages);
  }
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

// Messages between dtool and dtool-host (ssh/wire/protocol.h) about ways between hosts, and how far
// their clocks differ.

/// Listen for a while at rank 0's address, as machine 0's session does.
struct ListenRequest {
  static constexpr Kind kKind = Kind::listen_request;
  std::string address;  ///< the address of this machine, to find its interface
  std::int64_t port = 0;
  Hidden token;  ///< shared secret: both sides must know it
  std::int64_t machines = 1;
  std::int64_t seconds = 0;  ///< ends by itself after this

  void fields(auto visit) { visit(address, port, token, machines, seconds); }
};

struct ListenReply {
  static constexpr Kind kKind = Kind::listen_reply;
  /// The pid of the listening process, to end it earlier; 0: nothing listens.
  std::int64_t pid = 0;
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
  std::int64_t place = 0;       ///< the place of this machine
  std::int64_t timeout_ms = 0;  ///< the time limit for the answer

  void fields(auto visit) { visit(address, port, token, place, timeout_ms); }
};

struct HostClock {
  static constexpr Kind kKind = Kind::host_clock;
  std::int64_t nanoseconds = 0;  ///< the nanoseconds since 1970

  void fields(auto visit) { visit(nanoseconds); }
};

struct ReachReply {
  static constexpr Kind kKind = Kind::reach_reply;
  bool is_reached = false;
  std::string fault;      ///< why it was not reached; or empty
  std::string interface;  ///< interface of the route; or empty

  void fields(auto visit) { visit(is_reached, fault, interface); }
};

}  // namespace dtool::host
