// SPDX-License-Identifier: MIT
// The user's own `ssh` program: how to call it so that it keeps dtool's promises, and how to read
// its messages. Only texts; masters.cpp runs it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

/// The configuration file for ssh and for the ssh of each jump host. dtool's own settings come
/// first and so win; then come the settings of `options` and the user's files. Throws
/// std::invalid_argument if a file's name cannot stand in it.
std::string program_config(const ConnectOptions& options);

/// `ssh` and its arguments up to the host: the configuration file, the settings given by hand, user
/// and port. `extra` comes before the host.
std::vector<std::string> program_arguments(const std::string& config_file,
                                           const ConnectOptions& options, const Host& host,
                                           const std::vector<std::string>& extra);

/// The settings for one host, as `ssh -G` prints them.
struct ProgramSettings {
  std::string address;
  std::string user;
  std::string port;
  std::string control_path;  ///< the control path of the user's own masters; empty: none
  std::vector<std::filesystem::path> files;  ///< known_hosts files, keys and certificates
  std::filesystem::path known_hosts;         ///< the first of the user's
};
ProgramSettings read_program_settings(std::string_view text);

/// Whether the server closed the connection before its greeting, as one at its MaxStartups does.
bool is_dropped_greeting(std::string_view words);

/// Why ssh failed to log in, from its messages, after so many answers of the user.
HostError program_failure(std::string_view words, const ProgramSettings& settings,
                          std::size_t answers);

}  // namespace dtool::ssh
