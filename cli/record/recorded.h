// SPDX-License-Identifier: MIT
// Finds recorded runs for the commands that act on them.
#pragma once

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/action.h"
#include "killfiles/killfile.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// ~/.dtool/killfiles, the folder of recorded runs.
std::filesystem::path killfile_folder();

/// The run named by an id or a prefix; the newest if `id` is empty. Throws UsageError if none or
/// several match, or if its file cannot be read; `hint` is for when no run is recorded.
killfiles::Killfile recorded_run(const std::string& id,
                                 const std::string& hint = "dtool run starts one");

/// The file of the run that `id` means (killfiles::find). Throws UsageError that tells of a run
/// which was forgotten, std::invalid_argument if none or several match.
killfiles::Listed find_recorded(const std::string& id, const killfiles::Narrow& narrow = {},
                                killfiles::Parts parts = killfiles::Parts::count);

/// The recorded run that `text` means where it may also be a host: a mere part of an id, or a
/// group, is no run. Throws as recorded_run().
std::optional<killfiles::Killfile> run_unless_host(const std::string& text);

/// Says why the killfile could not be read.
UsageError unreadable(const killfiles::Listed& listed);

/// The places in the killfile of these machines, each named by its id or by its host as it is
/// recorded; all machines if `wanted` is empty. Throws UsageError on one that the run does not
/// have.
std::vector<std::size_t> choose_machines(const killfiles::Killfile& killfile,
                                         const std::vector<std::string>& wanted);

/// The machines of a run that are reached through one host, by their indexes in the killfile.
struct HostMachines {
  std::size_t host = 0;  ///< index of its first occurrence in `hosts`
  std::vector<std::size_t> machines;
};

/// Groups the machines by host; all machines of a scheduler's run share its login host. `hosts` has
/// one entry per machine in their order, or each host once.
std::vector<HostMachines> machines_by_host(const std::vector<ssh::Host>& hosts,
                                           const killfiles::Killfile& killfile);

/// `another host answers to this name, …; the run was started on …`, or empty. `host`: who says it
/// is there, as identify_host() of dtool-host; `result`: in whose answer.
std::string stranger_at(const killfiles::Machine& machine, const std::string& host,
                        const ssh::HostResult& result);

// Deletes what a run that has ended left in ~/.dtool/runs on its hosts. `dtool kill --delete` and
// `dtool list --prune` use it.

enum class What { tree, all };  ///< the run's own tree, or the whole folder of the run

/// Deletes it on all hosts of the run, which are the remote's. Names the folders that keep what the
/// run's processes wrote into their tree, and the hosts that could not do it. Returns how many
/// hosts had a tree.
std::size_t remove_on_hosts(Console& console, ssh::Remote& remote,
                            const killfiles::Killfile& killfile, What what);

// A run that is about to start, for run and config: its id and its killfile. What the check left on
// the hosts is deleted if nothing is started.

/// A unique name for a run: `<name>_20261121-034512-3fa91c`, with harmless characters only.
std::string make_run_id(const std::string& name);

/// A time in a killfile's form; nothing if it is another. And how people are shown it, in this
/// machine's time zone; another text stays.
std::optional<std::time_t> read_time(const std::string& text);
std::string local_time(const std::string& text);

/// The current time in UTC, in a killfile's form.
std::string utc_now();

/// Notes the time, the command line, and who starts the run and where.
void note_start(killfiles::Run& run, const std::vector<std::string>& command_line);

/// A killfile with the run's id and its start, of jobs over SSH that do not depend on each other.
/// It has no machines yet.
killfiles::Killfile new_killfile(const std::string& run_id,
                                 const std::vector<std::string>& command_line);

/// The killfile that `write` has written. If writing fails, nothing may be started: deletes the
/// run's folders on the hosts, and says why.
std::optional<killfiles::Killfile> write_or_discard(
    Console& console, ssh::Remote& remote, const std::string& run_id,
    const std::function<killfiles::Killfile()>& write);

/// Deletes the run's folder on hosts that were checked but where nothing was started, and the tree
/// in it. After the first Ctrl-C the hosts are reached anew by `reach` for that, for seconds and
/// until the next signal: an interrupted Remote asks nobody. What stays, a later run deletes when
/// it is a day old.
void discard_run_folders(ssh::Remote& remote, const std::string& run_id, const Reach& reach = {},
                         ssh::ConnectOptions connect = {});

}  // namespace dtool::cli
