// The user's own defaults: ~/.dtool/config.toml, then ./dtool.toml; each later file wins, flags win
// over both.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtool::cli {

/// What the configuration files say. Absent: nothing was said.
struct Settings {
  std::optional<std::string> runs_on;         ///< hosts where --runs_on is left out
  std::map<std::string, std::string> groups;  ///< name to host patterns, for `@name`
  // [ssh]
  std::optional<std::chrono::milliseconds> connect_timeout;  ///< written in seconds, whole or not
  std::optional<std::size_t> width;                          ///< hosts at work at once
  std::optional<std::string> ssh_config_file;                ///< as ssh -F
  // [connections]
  std::optional<std::chrono::seconds>
      keep_connections;  ///< idle for so long at most; 0: not at all
  // [run]
  std::optional<std::string> code_path;
  std::optional<std::string> env_activate_path;
  std::optional<std::string> output_dir;
  std::optional<std::string> nproc_per_node;  ///< a number or `auto`
  std::vector<std::string> exclude;
  std::optional<bool> relay;
  std::optional<std::string> modules;  ///< names, separated by blanks
  std::optional<std::string> container;
  std::optional<std::string> container_engine;
  std::vector<std::string> bind;
  // [environment]
  std::map<std::string, std::string> environment;  ///< variables for every run
};

/// Reads both files, each of which may be missing. Throws std::invalid_argument with
/// `file:line:column:`, naming the nearest known key for an unknown one, on TOML errors and wrong
/// types.
Settings read_settings(const std::filesystem::path& user_file,
                       const std::filesystem::path& project_file);

}  // namespace dtool::cli
