// The user's own `ssh` program: how it is called so that it keeps dtool's promises, and what its
// words mean. Texts only; masters.cpp runs it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

/// The configuration file that ssh is given, and gives to the ssh of each jump host: dtool's own
/// settings, which the first value makes win, then what `options` and the user's files say. Throws
/// std::invalid_argument if a file's name cannot stand in it.
std::string program_config(const ConnectOptions& options);

/// `ssh` and the words up to the host: the configuration file, the settings given by hand, user and
/// port. `extra` comes before the host.
std::vector<std::string> program_arguments(const std::string& config_file,
                                           const ConnectOptions& options, const Host& host,
                                           const std::vector<std::string>& extra);

/// What ssh will do for one host, as `ssh -G` prints it.
struct ProgramSettings {
  std::string address;
  std::string user;
  std::string port;
  std::string control_path;                  ///< of the user's own masters; empty: none
  std::vector<std::filesystem::path> files;  ///< known_hosts files, keys and certificates
  std::filesystem::path known_hosts;         ///< the first of the user's
};
ProgramSettings read_program_settings(std::string_view text);

/// Whether the server closed before its greeting, as one at its MaxStartups does.
bool is_dropped_greeting(std::string_view words);

/// Why ssh let nobody in, from what it printed; the user has given so many answers.
HostError program_failure(std::string_view words, const ProgramSettings& settings,
                          std::size_t answers);

}  // namespace dtool::ssh
