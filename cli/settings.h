// SPDX-License-Identifier: MIT
// The user's own defaults: ~/.dtool/config.toml, then ./dtool.toml. Each later file wins, and flags
// win over both. The second file came with the folder, perhaps from somebody else. So it is ignored
// for recorded runs, and it must be accepted if it decides more than numbers.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtool::cli {

/// A group of hosts: patterns, or the place where its hosts stand.
struct NamedGroup {
  std::string hosts;          ///< host patterns; empty: `from` is given
  std::string from = {};      ///< command, ansible, genders, ssh_config or slurm
  std::string argument = {};  ///< a command line of the shell, or a file; empty where it needs none
  std::string only = {};  ///< an inventory's group, an attribute or a partition; empty: all hosts

  bool operator==(const NamedGroup&) const = default;
};

/// The hosts of such a place, read now, each once, separated by commas; they are no groups. Runs a
/// program for `command` and `slurm`. Throws std::invalid_argument that names the place and the
/// fault, also where it names no host.
std::string hosts_from(const NamedGroup& group);

/// The values of the configuration files. Absent: not given.
struct Settings {
  std::optional<std::string> runs_on;        ///< hosts if --runs_on is left out
  std::map<std::string, NamedGroup> groups;  ///< the groups that `@name` names
  // [ssh]
  /// written in seconds, with or without decimals
  std::optional<std::chrono::milliseconds> connect_timeout;
  std::optional<std::size_t> width;            ///< hosts served at once
  std::optional<std::string> ssh_config_file;  ///< the file that ssh -F takes
  std::optional<std::string> ssh_program;      ///< auto, libssh or ssh
  std::optional<std::string> ssh_ask;          ///< each or once
  // [connections]
  std::optional<std::chrono::seconds> keep_connections;  ///< longest idle time; 0: not kept
  // [run]
  std::optional<std::string> code_path;
  std::optional<std::string> env_activate_path;
  std::optional<std::string> output_dir;
  std::optional<std::string> nproc_per_node;  ///< a number or `auto`
  std::optional<int> lost_after;              ///< seconds
  std::vector<std::string> exclude;
  std::optional<bool> relay;
  std::optional<bool> own_tree;
  std::optional<std::string> modules;  ///< names, separated by blanks
  std::optional<std::string> container;
  std::optional<std::string> container_engine;
  std::vector<std::string> bind;
  // [clean]
  std::optional<double> clean_older_than;  ///< days
  std::optional<double> clean_max_gb;      ///< gigabytes of each host
  // [environment]
  std::map<std::string, std::string> environment;  ///< variables for every run
};

/// The values of the user's own file alone: only these may decide how recorded runs are reached.
struct UserSettings {
  Settings settings;
};

/// The content of a project's file.
struct ProjectFile {
  std::filesystem::path path;  ///< canonical
  std::string text;
  std::vector<std::string> to_accept;  ///< keys that decide which hosts are reached, how, or what
                                       ///< runs
};

/// Nothing if there is no such file. Throws std::invalid_argument with `file:line:column:` on TOML
/// errors, wrong types and unknown keys (naming the nearest known one).
std::optional<ProjectFile> read_project_file(const std::filesystem::path& file);

/// Whether it needs no acceptance, or was accepted with this content at this path.
bool is_accepted(const ProjectFile& file);
/// Remembers that, in ~/.dtool/accepted_settings.
void accept(const ProjectFile& file);

/// Both files, each read on first use; each may be missing.
class SettingsFiles {
 public:
  SettingsFiles(std::filesystem::path user_file, std::filesystem::path project_file)
      : user_file_(std::move(user_file)), project_file_(std::move(project_file)) {}

  /// For recorded runs, independent of the current folder. Throws as read_project_file().
  const UserSettings& users();
  /// For new runs. Throws UsageError if the project's file has to be accepted first.
  const Settings& all();

 private:
  std::filesystem::path user_file_;
  std::filesystem::path project_file_;
  std::optional<UserSettings> users_;
  std::optional<Settings> all_;
};

}  // namespace dtool::cli
