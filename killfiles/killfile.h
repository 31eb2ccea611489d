// SPDX-License-Identifier: MIT
// A killfile: what one run started on which machines. It is kept under ~/.dtool until the run is
// ended. With this file and the keys, any machine can watch and end the run. What is new of a run
// goes into run.h alone.
//
// killfile_text.cpp writes and reads the text, killfile_folder.cpp finds and keeps the files,
// AllenAct's form, too.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "killfiles/run.h"

namespace dtool::killfiles {

// Who a host is. A name that leads to another host later is told apart from the same host after a
// reboot. ssh/host/process_table.h asks a host.

/// What a host said about itself, and the key that its SSH server showed. Unknown parts are empty.
struct HostIdentity {
  std::string machine_id;  ///< 32 hex digits derived from /etc/machine-id, which itself stays
                           ///< private
  std::string name;        ///< the name that `uname -n` prints
  /// The boot id of the kernel; hosts that are namespaces of one kernel share it.
  std::string boot_id;
  std::string process_namespace;  ///< its number; tells hosts of one kernel apart
  std::string host_key;           ///< `ssh-ed25519 SHA256:…`, as the launcher saw it

  bool operator==(const HostIdentity&) const = default;

  bool is_known() const { return !boot_id.empty(); }

  /// With the names that a record has.
  void fields(auto visit) {
    visit(cell({"name"}, name), cell({"machine_id"}, machine_id), cell({"boot_id"}, boot_id),
          cell({"process_namespace"}, process_namespace), cell({"host_key"}, host_key));
  }
};

/// The recorded host compared with the host that is found now.
enum class Likeness {
  same,      ///< nothing shows a reboot: it sees every process that it saw then
  rebooted,  ///< the same host, but no process of then is left
  another,   ///< another host, or one that cannot be told from another
  unknown,   ///< nothing was recorded
};

/// Within one boot and process namespace the host is the same, whatever else changed. Over a
/// reboot, machine id and name must be equal, and so must the keys if both have the same type.
/// Without a machine id the keys must be known.
Likeness compare(const HostIdentity& recorded, const HostIdentity& found);

/// Four words in one line: machine id, name, boot id, process namespace; `-` for an unknown one.
/// Nothing if a word is malformed: the line may come from a host.
std::optional<HostIdentity> parse_identity(std::string_view line);

/// The same line, without the host key; empty if nothing is known.
std::string to_line(const HostIdentity& identity);

/// Whether each part is empty or well-formed.
bool is_well_formed(const HostIdentity& identity);

/// `login2 (boot 5f0c91aa, machine 3d1219c7, ssh-ed25519 SHA256:…)`, for messages.
std::string describe(const HostIdentity& identity);

/// One machine's part of a run.
struct Machine {
  int id = 0;                  ///< machine id, from 0 in the hosts' order
  std::string host;            ///< the text that ssh::parse_host reads
  std::string session;         ///< name of its screen session
  std::string state_folder;    ///< start script, process, exit code; a path on the host from `/` or
                               ///< `~/`
  std::string log;             ///< a path on the host from `/` or `~/`
  std::string output_folder;   ///< a path on the host from `/` or `~/`; empty if there is none
  HostIdentity identity = {};  ///< where its session runs; nothing if a scheduler chooses the host

  bool operator==(const Machine&) const = default;
};

enum class RunKind { run, config };

/// A run, and what it takes to reach and to end it. Of the run's fields it has those that are kept
/// in killfiles.
struct Killfile : Run {
  RunKind kind = RunKind::run;
  int nproc_per_node = 0;  ///< the number for the first machine; 0 for dtool config
  std::string code_path;
  /// The time when `dtool kill` had proven that nothing is left; empty: not yet.
  std::string ended;
  std::string job;          ///< the scheduler's id of the run; empty: none, or not known yet
  std::string coordinator;  ///< `IP:PORT` at which machine 0's session listens for the others; or
                            ///< empty
  std::string ssh_config_file;  ///< the file that ssh -F takes; empty: the default
  /// The settings that ssh -o takes.
  std::vector<std::pair<std::string, std::string>> ssh_settings;
  std::vector<Machine> machines;

  bool operator==(const Killfile&) const = default;
};

/// ~/.dtool/runs/<run id> on a host. Starting a job makes this folder; kill --delete removes it.
std::string run_folder(const std::string& run_id);

/// The run's own tree in that folder, where its processes work (ssh/host/tree/own_tree.h).
std::string tree_folder(const std::string& run_id);

/// The state folder of machine `id` in that folder.
std::string state_folder(const std::string& run_id, int id);

/// The killfile's text. parse() reads it back to an equal value, but for the fields of the run that
/// killfiles do not have, and refuses it if its end was cut off. Throws std::invalid_argument on a
/// value that parse() would refuse.
std::string to_text(const Killfile& killfile);

/// Reads a killfile's text; `name` stands for the file in messages. Throws std::invalid_argument
/// with `name:line:column:` on TOML errors, unknown keys (with the nearest known one), missing
/// keys, a malformed run id, values that no run has (two machines with one id, a relative folder),
/// and a file that was cut short (the message says how many machines it should name).
Killfile parse(std::string_view text, const std::string& name);

/// Reads AllenAct's form: lines of `IP screen_name`, each with its line end. Such runs have no id,
/// so the run id is empty. Throws std::invalid_argument with `name:line:` on any other line.
Killfile parse_allenact(std::string_view text, const std::string& name);

/// Reads either form; the content tells which. Throws std::invalid_argument as above, and if `file`
/// cannot be read.
Killfile read(const std::filesystem::path& file);

/// `folder`/`run id`.killfile, the file of that run. Throws std::invalid_argument if `run_id` is
/// not a run id.
std::filesystem::path path_of(const std::filesystem::path& folder, std::string_view run_id);

/// Writes the file durably: temporary file, fsync, rename, fsync of the folder. The file is 0600, a
/// new folder 0700. Returns the file. Throws std::runtime_error naming the file.
std::filesystem::path write(const std::filesystem::path& folder, const Killfile& killfile);

/// One file of the folder. Unreadable files are listed too, with the reason.
struct Listed {
  std::filesystem::path file;
  std::optional<Killfile> killfile;
  std::string error;
};

/// All killfiles in `folder`, newest first; empty if there is no such folder.
std::vector<Listed> list(const std::filesystem::path& folder);

/// Without what `dtool config` started, unless there is nothing else: what `last` counts.
std::vector<Listed> without_set_ups(const std::vector<Listed>& all);

/// No recorded run is meant. It may be a host.
struct NoSuchRun : std::invalid_argument {
  using invalid_argument::invalid_argument;
};

/// The ids among `newest_first` that `text` may mean: the whole id; `last`, the newest one, and
/// `last-1`, the one before it; those with that tag (`lr3` of `train_lr3_20261121-…`); those that
/// begin with it, as by their whole name (`train_lr3`); those that have it within. Throws
/// NoSuchRun on `@lab`, which is a group of hosts.
struct Meant {
  std::vector<std::string> ids;  ///< newest first
  bool is_tag = false;           ///< the newest of several is meant
  bool is_part = false;          ///< they have it within: it may mean something else
};
Meant runs_meant(const std::vector<std::string>& newest_first, std::string_view text);

/// The recorded runs of several that are still meant, for instance those that have not ended.
using Narrow = std::function<std::vector<Listed>(std::vector<Listed>)>;

/// Whether a text that stands within an id means that run.
enum class Parts { count, do_not_count };

/// The recorded run that `text` means (runs_meant). A file that cannot be read or holds no run id
/// goes by its name without `.killfile`. `narrow` is asked if several match; where it leaves none,
/// they all stay, and of those that it leaves none is preferred. `told` gets a sentence if the
/// newest of several with a tag or a name was taken. Throws
/// std::invalid_argument: with the candidates if several match, with the recorded runs if none
/// matches.
Listed find(const std::filesystem::path& folder, std::string_view text, const Narrow& narrow = {},
            const std::function<void(std::string_view)>& told = {}, Parts parts = Parts::count);

}  // namespace dtool::killfiles
