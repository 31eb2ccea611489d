// The user's own defaults: ~/.dtool/config.toml, then ./dtool.toml; each later file wins, flags win
// over both. The second came with the folder, maybe from somebody else: it is not asked about runs
// that were recorded, and what it decides beyond numbers has to be accepted.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
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
  std::optional<std::string> ssh_program;                    ///< auto, libssh or ssh
  std::optional<std::string> ssh_ask;                        ///< each or once
  // [connections]
  std::optional<std::chrono::seconds>
      keep_connections;  ///< idle for so long at most; 0: not at all
  // [run]
  std::optional<std::string> code_path;
  std::optional<std::string> env_activate_path;
  std::optional<std::string> output_dir;
  std::optional<std::string> nproc_per_node;  ///< a number or `auto`
  std::optional<int> lost_after;              ///< seconds
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

/// What the user's own file says, and no other: all that recorded runs may be reached by.
struct UserSettings {
  Settings settings;
};

/// A project's file, as it was read.
struct ProjectFile {
  std::filesystem::path path;  ///< canonical
  std::string text;
  std::vector<std::string> to_accept;  ///< keys that decide who is reached, how, or what runs
};

/// Nothing if there is no such file. Throws as read_settings does.
std::optional<ProjectFile> read_project_file(const std::filesystem::path& file);

/// Whether it needs no acceptance, or was accepted as it is now: the same content at the same path.
bool is_accepted(const ProjectFile& file);
/// Remembers that, in ~/.dtool/accepted_settings.
void accept(const ProjectFile& file);

/// Both files, each read when it is asked for.
class SettingsFiles {
 public:
  SettingsFiles(std::filesystem::path user_file, std::filesystem::path project_file)
      : user_file_(std::move(user_file)), project_file_(std::move(project_file)) {}

  /// For runs that were recorded, whichever folder dtool is called in. Throws as read_settings
  /// does.
  const UserSettings& users();
  /// For what is new. Throws UsageError if the project's file has to be accepted first.
  const Settings& all();

 private:
  std::filesystem::path user_file_;
  std::filesystem::path project_file_;
  std::optional<UserSettings> users_;
  std::optional<Settings> all_;
};

}  // namespace dtool::cli
