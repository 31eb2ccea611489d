// SPDX-License-Identifier: MIT
// How hosts are reached: what the flags and the settings say of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace dtool::ssh
