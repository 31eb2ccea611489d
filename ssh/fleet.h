// SPDX-License-Identifier: MIT
// The real Remote: one thread, one io_context, one libssh session a host.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/remote.h"
#include "ssh/silent_hosts.h"

namespace dtool::ssh {

/// Which SSH client reaches the hosts.
enum class Program {
  automatic,  ///< libssh, and `ssh` if the SSH configuration needs what libssh cannot do
  libssh,     ///< libssh alone: a host that needs `ssh` fails
  ssh,        ///< the user's own `ssh` program for every host
};

/// When the user answers what `ssh` asks: for each host, or once for all hosts with the same user
/// and prompt.
enum class Ask { each, once };

/// How hosts are reached.
struct ConnectOptions {
  std::optional<std::filesystem::path> config_file = {};           ///< as ssh -F
  std::vector<std::pair<std::string, std::string>> settings = {};  ///< as ssh -o, keyword and value
  std::chrono::milliseconds connect_timeout{10'000};  ///< if the configuration names none
  /// wins over the configuration
  std::optional<std::chrono::milliseconds> forced_connect_timeout = {};
  std::size_t width = 256;       ///< most hosts served at once
  std::chrono::seconds keep{0};  ///< connections stay open for later commands while idle for less
                                 ///< than this; 0: none is kept or taken
  int tries = 6;  ///< for a connection that is dropped before its greeting; nothing else is retried
  Program program = Program::automatic;
  Ask ask = Ask::each;
  std::filesystem::path trace = {};  ///< folder for a file per host with all messages sent and
                                     ///< received; or empty

  /// Hosts that are in it are not tried; nothing: every host is tried in each step.
  std::shared_ptr<SilentHosts> silent = {};

  bool operator==(const ConnectOptions&) const = default;
};

/// Opens no connection yet. Throws std::invalid_argument if the SSH configuration cannot be read or
/// the trace folder cannot be written, and std::runtime_error if the limit of open files is too low
/// for so many hosts.
std::unique_ptr<Remote> make_fleet(std::vector<Host> hosts, const ConnectOptions& options);

/// The internal command that rsync runs as its remote shell. It passes its standard streams and
/// `words` to the dtool that started rsync, waits, and returns the remote exit code (255 if there
/// is no such dtool).
int remote_shell(const std::vector<std::string>& words);

}  // namespace dtool::ssh
