// SPDX-License-Identifier: MIT
// How hosts are reached: what the flags and the settings say of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

// Which hosts did not answer in an earlier step of a command of many steps: later steps do not wait
// for them once more. All fleets of that command share one.

class SilentHosts {
 public:
  /// A host that has answered is waited for again whenever its connection is lost.
  void note_answer(const Host& host) { answered_.insert(to_string(host)); }
  /// What a connection to the host failed of. Only a host that never answered counts as silent, and
  /// only if the time was up: every other failure comes at once.
  void note_failure(const Host& host, const HostError& error) {
    const std::string name = to_string(host);
    if (error.failure() == Failure::connect_timed_out && !answered_.contains(name))
      silent_.try_emplace(name, error);
  }
  /// That failure, if the host is silent.
  std::optional<HostError> find(const Host& host) const {
    const auto found = silent_.find(to_string(host));
    return found == silent_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::set<std::string> answered_;
  std::map<std::string, HostError> silent_;
};

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
  std::optional<std::filesystem::path> config_file = {};  ///< the file that ssh -F takes
  /// The settings that ssh -o takes, keyword and value.
  std::vector<std::pair<std::string, std::string>> settings = {};
  /// The limit that holds if the configuration names none.
  std::chrono::milliseconds connect_timeout{10'000};
  /// wins over the configuration
  std::optional<std::chrono::milliseconds> forced_connect_timeout = {};
  std::size_t width = 256;       ///< most hosts served at once
  std::chrono::seconds keep{0};  ///< connections stay open for later commands while idle for less
                                 ///< than this; 0: none is kept or taken
  /// The tries for a connection that is dropped before its greeting; nothing else is retried.
  int tries = 6;
  Program program = Program::automatic;
  Ask ask = Ask::each;
  std::filesystem::path trace = {};  ///< folder for a file per host with all messages sent and
                                     ///< received; or empty

  /// Hosts that are in it are not tried; nothing: every host is tried in each step.
  std::shared_ptr<SilentHosts> silent = {};

  bool operator==(const ConnectOptions&) const = default;
};

}  // namespace dtool::ssh
