// A killfile: what one run started where, kept under ~/.dtool until the run is ended. Enough to
// watch and end the run from any machine that has this file and the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "killfiles/host_identity.h"

namespace dtool::killfiles {

/// One machine's part of a run.
struct Machine {
  int id = 0;                 ///< machine id, from 0 in the hosts' order
  std::string host;           ///< as ssh::parse_host reads it
  std::string session;        ///< name of its screen session
  std::string state_folder;   ///< start script, process, exit code; on the host, from `/` or `~/`
  std::string log;            ///< on the host, from `/` or `~/`
  std::string output_folder;  ///< likewise; empty if there is none
  HostIdentity identity =
      {};  ///< of the host where its session runs; nothing if a scheduler chooses it

  bool operator==(const Machine&) const = default;
};

enum class Kind { run, config };

/// Everything recorded about one run. Times are UTC, as `2026-11-21T03:45:12Z`.
struct Killfile {
  std::string run_id;  ///< every process of the run carries it as DTOOL_RUN_ID; see is_run_id
  Kind kind = Kind::run;
  std::string created;
  std::string launcher;                   ///< user@host that started it
  std::vector<std::string> command_line;  ///< dtool's own arguments
  std::string what;                       ///< the experiment's or the program's name, for lists
  std::optional<std::uint64_t> seed;
  std::string distributed_ip_and_port;  ///< empty if there is none
  int nproc_per_node = 0;               ///< 0: chosen by each machine
  std::string code_path;
  std::string on_failure = "leave";  ///< `stop`: one machine's failure ends the others
  int max_restarts = 0;              ///< of the whole run, after a failure
  std::string launched_by = "ssh";   ///< the launcher's name
  std::string ended;        ///< when `dtool kill` had proven that nothing is left; empty: not yet
  std::string job;          ///< a scheduler's id of it; empty: none, or not known yet
  std::string coordinator;  ///< `IP:PORT` where machine 0's session hears the others'; or empty
  std::string ssh_config_file;                                    ///< as ssh -F; empty: the default
  std::vector<std::pair<std::string, std::string>> ssh_settings;  ///< as ssh -o
  std::vector<Machine> machines;

  bool operator==(const Killfile&) const = default;
};

/// Whether `id` may name a run: letters, digits, `.`, `_`, `-`, the first a letter or digit, 200 at
/// most. It becomes a file name here and a folder name on every host.
bool is_run_id(std::string_view id);

/// ~/.dtool/runs/<run id>, on a host: the folder that the start of a job needs and that kill
/// --delete takes away.
std::string run_folder(const std::string& run_id);

/// The state folder of machine `id` in it.
std::string state_folder(const std::string& run_id, int id);

/// The killfile's text; parse reads it back to an equal value, and no part of it that was cut off
/// at the end passes for a whole one. Throws std::invalid_argument on a value that parse would
/// refuse.
std::string to_text(const Killfile& killfile);

/// Reads a killfile's text; `name` stands in messages. Throws std::invalid_argument with
/// `name:line:column:` on TOML errors, unknown keys (with the nearest known one), missing keys, a
/// run id with other characters, values that no run has (two machines of one id, a folder relative
/// to nothing), and a file that was cut short (it says how many machines it should name).
Killfile parse(std::string_view text, const std::string& name);

/// Reads AllenAct's form: lines of `IP screen_name`, each with its line end. The run id is empty:
/// such runs carry none. Throws std::invalid_argument with `name:line:` on another line.
Killfile parse_allenact(std::string_view text, const std::string& name);

/// Either form, told apart by its content. Throws std::invalid_argument as above, and where `file`
/// cannot be read.
Killfile read(const std::filesystem::path& file);

/// `folder`/`run id`.killfile, where a killfile of that run is kept. Throws std::invalid_argument
/// on what is no run id.
std::filesystem::path path_of(const std::filesystem::path& folder, std::string_view run_id);

/// Writes to a temporary file, fsyncs, renames, fsyncs the folder; 0600 in a folder made 0700.
/// Returns the file. Throws std::runtime_error naming the file.
std::filesystem::path write(const std::filesystem::path& folder, const Killfile& killfile);

/// One file of the folder; unreadable ones are listed too, with why.
struct Listed {
  std::filesystem::path file;
  std::optional<Killfile> killfile;
  std::string error;
};

/// All killfiles in `folder`, newest first; empty if there is no such folder.
std::vector<Listed> list(const std::filesystem::path& folder);

/// The recorded run whose id is `id_or_prefix` or, alone, begins with it; a file that cannot be
/// read, or holds no run id, goes by its name without `.killfile`. Throws std::invalid_argument
/// naming the candidates where several do, and the recorded runs where none does.
Listed find(const std::filesystem::path& folder, std::string_view id_or_prefix);

}  // namespace dtool::killfiles
